#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quantize.sh STARLING MODELS: `starling quantize` writes files that `starling inspect` opens, of models whose operators import brings
# into another form, and of links; one that cannot be written is refused in one line, and there is no file. MODELS writes the models.
set -euo pipefail
starling=$1
models=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache
status=0
cd "$folder"
"$models" .

wrong() {
        printf 'starling quantize: %s\n' "$*"
        status=1
}

# quantize NAME ARGUMENT...
quantize() {
        local name=$1
        shift
        "$starling" quantize "$name.onnx" --calibration "$name.f32" --max-loss 1 "$@" -o out.onnx >out 2>err
}

# In what inspect printed: nodes that compute on bytes, and no product that stayed float32.
is_quantized() {
        grep -q 'starling\.Quantized[A-Za-z]*  *0  *[1-9]' out && grep -q 'float_products: 0 of [1-9]' out
}

for name in upsampled recurrent; do
        for wish in '--precision int8' '--precision bf16' '--weights f16'; do
                rm -f out.onnx
                # shellcheck disable=SC2086 # an option and its value
                quantize "$name" $wish || wrong "$name $wish: $(<err)"
                [[ $(<err) != *warning* ]] || wrong "$name $wish: $(<err)"
                "$starling" inspect out.onnx >out 2>err || wrong "inspect, $name $wish: $(<err)"
                [[ $wish != *int8 ]] || is_quantized || wrong "no bytes in $name: $(<out)"
        done
done

# What is there is replaced when the other is whole, under another name until then; a link stays one, a pipe is left alone.
echo old >kept
ln -sf kept out.onnx
quantize upsampled --precision int8 || wrong "over a link: $(<err)"
[[ -L out.onnx && $(<kept) != old ]] || wrong 'the link was replaced, or not followed'
rm -f out.onnx kept
mkfifo out.onnx
! timeout 120 "$starling" quantize upsampled.onnx --calibration upsampled.f32 -o out.onnx >out 2>err || wrong 'a pipe is written to'
[[ -p out.onnx && $(<err) == *'"out.onnx" is no regular file'* ]] || wrong "a pipe: $(<err)"

# Samples and the model itself may lie elsewhere, with links to them.
rm -f out.onnx
mkdir elsewhere samples linked
cp upsampled.f32 samples/x.f32
cp upsampled.onnx elsewhere/blob
ln -s ../samples/x.f32 linked/x.f32
ln -s ../elsewhere/blob linked/model.onnx
quantize upsampled --precision int8 || wrong "before links: $(<err)"
"$starling" quantize linked/model.onnx --calibration linked --max-loss 1 -o linked.onnx >out 2>err || wrong "links: $(<err)"
cmp -s out.onnx linked.onnx || wrong 'links lead to other samples'
rm -f out.onnx

# A variant without bytes is none: it is written, and said to be so in one line.
warned() {
        [[ $(grep -c . err) = 1 && $(<err) == *"warning: $1"* ]] || wrong "$1: $(<err)"
}
rm -f out.onnx
quantize plain || wrong "no products: $(<err)"
warned '"plain.onnx" has no products with constant weights: nothing is quantized'
quantize upsampled --max-loss 0 || wrong "all given back: $(<err)"
warned 'nothing is quantized: with --max-loss 0 all 2 products stay float32'

# Names that there is no room for are left out whole.
rm -f out.onnx
quantize named --max-loss 0 || wrong "long names: $(<err)"
tail=$(printf 'ä%.0s' {1..70})
names=$(printf "p%d$tail," {0..6})…
[[ $(grep '^float_nodes' out) = "float_nodes       $names" ]] || wrong "long names: $(<out)"
"$starling" inspect out.onnx >out 2>err
grep -qxF "              float_nodes: $names" out || wrong "inspect, long names: $(<out)"

# refused TEXT ARGUMENT...: wrong usage, in one line.
refused() {
        local text=$1 rc=0
        shift
        quantize upsampled "$@" || rc=$?
        [[ $rc = 2 && $(wc -l <err) = 1 && $(<err) == *"$text"* ]] || wrong "$*: $rc, $(<err)"
}

for value in 3abc 3.5 -1 0 '' 99999999999999999999999; do
        refused "--samples: \"$value\" is not a number from 1 to" --samples "$value"
done
refused '--method: "foo" is not one of minmax, percentile, mse' --method foo
refused '--max-loss: "2" is not a number from 0 to 1' --max-loss 2
refused '--percentile: "10" is not a number from 50 to 100' --percentile 10
refused 'precision fp32 with weights of fp32 is the model itself' --precision fp32

rm -f out.onnx
! quantize branching --precision bf16 || wrong 'a branch is written'
[[ $(wc -l <err) = 1 && $(<err) == *'a graph with an If, a Loop or a Scan is not written'* ]] || wrong "a branch: $(<err)"
[ ! -e out.onnx ] || wrong 'what is refused leaves a file'
exit $status
