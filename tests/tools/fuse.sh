#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuse.sh STARLING MODELS: copies of one network are one group, others stand alone, each with its reason; the table and where the common
# part ends are said; what was compiled is in the cache the second time; a merged plan says what it is; a bad model is one line.
set -euo pipefail
starling=$1
models=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache TMPDIR=$folder
mkdir "$folder/cache"
status=0

wrong() {
        printf 'starling: %s\n' "$*"
        status=1
}

# copy MODEL NAME: into the repository
copy() {
        mkdir -p "$folder/models/$2/1"
        cp "$models/$1/1/model.onnx" "$folder/models/$2/1/"
}

# fuse ARGUMENT...: without a clock in what is decided; what it says goes to out and err
fuse() {
        "$starling" fuse -O merge_seconds=0 -O batch_max=2 --lanes 2 "$@" >"$folder/out" 2>"$folder/err" || wrong "fuse: $(<"$folder/err")"
}

# says WORDS: the last output has a line with them
says() {
        grep -q -- "$1" "$folder/out" || wrong "\"$1\" is not said: $(<"$folder/out")"
}

for name in one two three; do copy lenet $name; done
copy resnet other
fuse --explain "$folder/models"
says '^4 models on '
says '^group 1: 3 models of one architecture: one, three, two$'
says '^  2 lanes (one, three): '
says ' nodes are common, '
says ' batch lanes   separate us   one job us    merged us'
says '^alone: other: no other model has its architecture and its options$'

fuse --json "$folder/models"
python3 - "$folder/out" <<'END' || wrong "JSON: $(<"$folder/out")"
import json, sys
said = json.load(open(sys.argv[1]))
assert said["processor"] and said["alone"][0]["model"] == "other"
group, = said["groups"]
assert group["models"] == ["one", "three", "two"]
trial = group["trials"][0]
assert trial["lanes"] == 2 and not trial["compiled"], "the cache has it"
assert trial["merged"] and trial["stacked_bytes"] > 0 and trial["merged_nodes"] <= trial["common_nodes"]
assert trial["table"]["occupied"] == [1, 2] and [row["batch"] for row in trial["table"]["rows"]] == [1, 2]
for row in trial["table"]["rows"]:
    assert min(row["merged_seconds"]) > 0 and len(row["merged_seconds"]) == len(row["one_job_seconds"]) == len(row["separate_seconds"]) == 2
END

merged=0
for plan in "$folder"/cache/starling/*.plan; do
        "$starling" inspect "$plan" >"$folder/out" || wrong "inspect of a plan: status $?"
        says '^weights '
        if grep -q '^merged    2 lanes: .* bytes of constants are laid together, [0-9]* bytes are its members.$' "$folder/out"; then
                merged=$((merged + 1))
                "$starling" inspect --json "$plan" | grep -q '"lanes": 2' || wrong "inspect --json of a merged plan"
        fi
done
[ $merged = 1 ] || wrong "$merged merged plans in the cache"

# Weights that the merged plan has in another form are a tenth of the models' own, unless more is granted; what that would be is said.
copied() {
        python3 - "$folder/out" "$@" <<'END' || wrong "copied $*: $(<"$folder/out")"
import json, sys
trial = json.load(open(sys.argv[1]))["groups"][0]["trials"][0]
share = trial["weights_bytes"] / trial["single_weights_bytes"]
assert float(sys.argv[2]) <= share <= float(sys.argv[3]), share
assert any("bytes of weights are copied into other forms; without merge_copies" in note for note in trial["notes"]) == (sys.argv[4] == "bounded")
END
}
fuse --json "$folder/models"
copied 0 0.1 bounded
fuse -O merge_copies=1 --json "$folder/models"
copied 0.15 1 unbounded

# Products of bytes by scales and zero points of their own run lane by lane: what is merged around them has the single ones' bits.
mkdir "$folder/bytes"
for samples in 40 80; do
        "$starling" quantize "$models/lenet/1/model.onnx" --calibration "$models/../test-images.f32" --samples $samples --max-loss 1 \
                --method minmax -o "$folder/bytes/$samples.onnx" >/dev/null 2>"$folder/err" || wrong "quantize: $(<"$folder/err")"
done
cmp -s "$folder/bytes/40.onnx" "$folder/bytes/80.onnx" && wrong "two calibrations give one model"
fuse --json "$folder"/bytes/*.onnx
python3 - "$folder/out" <<'END' || wrong "bytes: $(<"$folder/out")"
import json, sys
trial = json.load(open(sys.argv[1]))["groups"][0]["trials"][0]
assert trial["merged"] and 0 < trial["merged_nodes"] < trial["common_nodes"], trial
assert trial["table"]["difference"] == 0 and trial["weights_bytes"] < 0.1 * trial["single_weights_bytes"], trial
assert any("scales and zero points are of each lane" in note for note in trial["notes"])
END

# One model by its folder and by its file; and one that is none.
fuse "$folder/models/one" "$folder/models/two/1/model.onnx"
says '^group 1: 2 models of one architecture'
echo "no model" >"$folder/models/two/1/model.onnx"
fuse "$folder/models"
says '^group 1: 2 models of one architecture: one, three$'
says '^alone: two: .*model.onnx: not an ONNX file'

# refused STATUS WORDS ARGUMENT...
refused() {
        local code=0 wanted=$1 words=$2
        shift 2
        "$starling" fuse "$@" >"$folder/out" 2>"$folder/err" || code=$?
        [ $code = "$wanted" ] || wrong "fuse $*: status $code"
        grep -q -- "$words" "$folder/err" || wrong "fuse $*: $(<"$folder/err")"
        [ "$(wc -l <"$folder/err")" = 1 ] || wrong "fuse $*: more than a line: $(<"$folder/err")"
}

# Nothing said at all is answered with the usage, and where to read more.
code=0
"$starling" fuse >"$folder/out" 2>"$folder/err" || code=$?
[[ $code = 2 && $(<"$folder/err") == 'usage: starling fuse '*$'\n`starling fuse --help` says more.' && $(wc -l <"$folder/err") = 2 ]] ||
        wrong "fuse: status $code: $(<"$folder/err")"
refused 2 '--lanes: "1" is' --lanes 1 "$folder/models"
refused 2 '--seconds: "0" is' --seconds 0 "$folder/models"
refused 2 'is not an option and its value' -O nothing "$folder/models"
refused 1 'nowhere' "$folder/nowhere"
mkdir "$folder/empty"
refused 1 "$folder/empty: no NAME/VERSION/model.onnx and no NAME.onnx: it is empty" "$folder/empty"
exit $status
