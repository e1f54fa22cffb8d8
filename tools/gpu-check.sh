#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu-check.sh [OPTIONS]                      check an installation on this machine's GPU and measure it
# gpu-check.sh pack ARCHIVE.tar.xz [BUILD]    pack what a GPU's machine needs that has neither a compiler nor this tree
#
#     --out DIR      write figures to DIR (default: perf/results)
#     --only PARTS   run the parts PARTS alone, with commas between them (default: all)
#     --quick        measure little of everything, to see that it works
#     --list         list the parts
#     --help         print this
#
# Run it in a tree that is built (build/release) or in an unpacked archive. Each part has a time limit, and a part that fails or
# cannot run says why, while the others go on. Figures are gpu-DEVICE-DATE.json and .md, with --only and the parts in the name. What
# each part printed stays beside them in a folder of that name and .logs. cuDNN 9 and cuBLASLt 13 are the machine's own: those of a
# CUDA toolkit or of a Python environment.
#
# Exit status: 0 all parts passed or said why they cannot run; 1 one failed; 2 wrong arguments; 3 there is no GPU that can be used.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

say() {
        printf 'gpu-check: %s\n' "$*"
}

# ---- where things are ----

# In an archive programs lie in bin, in a tree in build/release/bin.
find_build() {
        local folder
        for folder in "${STARLING_BUILD:-build/release}" .; do
                [ -x "$folder/bin/starling-gpu" ] && { (cd "$folder" && pwd); return; }
        done
        say "no build with CUDA: neither build/release/bin/starling-gpu nor bin/starling-gpu" >&2
        exit 2
}

# Folders with cuDNN or cuBLASLt, for LD_LIBRARY_PATH. What is set already goes first.
find_nvidia() {
        local folder sites
        sites=$(python3 -c 'import site, sys; print("\n".join(p for p in sys.path + site.getsitepackages() if p))' 2>/dev/null)
        for folder in /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/local/nvidia/lib64 $(printf '%s/nvidia/*/lib ' $sites); do
                if compgen -G "$folder/libcudnn.so.9" >/dev/null || compgen -G "$folder/libcublasLt.so.13" >/dev/null ||
                        compgen -G "$folder/libcuda.so.1" >/dev/null; then
                        printf ':%s' "$folder"
                fi
        done
}

# Those of the archive that this machine lacks: its own may be newer, and others here want them.
find_libraries() {
        local file there
        [ -d lib ] || return 0
        rm -rf lib-used
        mkdir lib-used
        there=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null)
        for file in lib/*; do
                grep -q "[[:space:]]$(basename "$file") " <<<"$there" || ln -s "../$file" lib-used/
        done
        printf ':%s' "$PWD/lib-used"
}

# ---- the archive ----

# Libraries of a program that are not of every Linux's C library.
libraries_of() {
        ldd "$@" 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
                grep -Ev '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so'
}

pack() {
        local archive=$1 build=${2:-build/release} stage size file module
        stage=$(mktemp -d)
        # shellcheck disable=SC2064 # the folder of now
        trap "rm -rf '$stage'" EXIT
        mkdir -p "$stage/bin" "$stage/lib" "$stage/tools" "$stage/perf/zoo" "$stage/perf/gpu" "$stage/client/examples" "$stage/cases"
        for file in starling starling-gpu gpu-own gpu-serve; do
                [ -x "$build/bin/$file" ] || { say "$build/bin/$file is missing: build first"; exit 2; }
                strip -o "$stage/bin/$file" "$build/bin/$file"
        done
        module=$(find "$build/lib" -name libstarling_cuda.so | head -n 1)
        [ -n "$module" ] || { say "libstarling_cuda.so is missing in $build: was there a CUDA compiler?"; exit 2; }
        strip -o "$stage/bin/libstarling_cuda.so" "$module"
        for file in $(libraries_of "$build/bin/starling" "$build/bin/starling-gpu" "$build/bin/gpu-own" "$build/bin/gpu-serve" "$module"); do
                cp -L "$file" "$stage/lib/"
        done
        cp tools/gpu-check.sh "$stage/tools/"
        cp perf/gpu/peer.py "$stage/perf/gpu/"
        cp -r perf/zoo/skeletons "$stage/perf/zoo/"
        cp -r client/examples/digits "$stage/client/examples/"
        (cd /usr/share/libonnx-testdata/data/node 2>/dev/null && find . -name model.onnx -print0 | tar -cf - --null -T -) | tar -xf - -C "$stage/cases" 2>/dev/null
        tar -C "$stage" -cf - . | xz -T0 -0 >"$archive"
        size=$(stat -c %s "$archive")
        say "$archive: $((size >> 20)) MiB"
        [ "$size" -le $((60 * 1000 * 1000)) ] || { say "more than 60 MB"; exit 1; }
}

# ---- parts ----

# figures NAME SECONDS COMMAND...: its lines of JSON become figures, all else goes to the log.
figures() {
        local name=$1 seconds=$2 status
        shift 2
        printf '$ %s\n' "$*" >>"$logs/$name.log"
        timeout -k 5 "$seconds" "$@" >"$logs/out" 2>>"$logs/$name.log"
        status=$?
        cat "$logs/out" >>"$logs/$name.log"
        grep '^{' "$logs/out" >>"$logs/$name.jsonl"
        [ $status -eq 124 ] && printf 'it ran for more than %s s\n' "$seconds" >>"$logs/$name.log"
        return $status
}

gpu() {
        local name=$1 seconds=$2
        shift 2
        figures "$name" "$seconds" "$build/bin/starling-gpu" "$@"
}

skeleton() {
        printf 'perf/zoo/skeletons/%s.onnx' "$1"
}

part_device() { gpu device 60 device; }
part_launch() { gpu launch 60 launch; }
part_lets() { gpu lets 60 lets; }

part_own() {
        local suite status=0
        for suite in known_nodes random_nodes; do
                STARLING_TRY_GPU=1 figures own 250 "$build/bin/gpu-own" --filter $suite/ || status=1
        done
        return $status
}

# ONNX's own cases, by ref and by the GPU: what the backend does not run is refused by name. Of the 932 of Debian's package 607 are
# run (tests/kernels/cuda/coverage.c has the others); where far fewer are, something that they share was refused.
part_conformance() {
        local cases folder=cases
        [ -d "$folder" ] || folder=/usr/share/libonnx-testdata/data/node
        mapfile -t cases < <(find "$folder" -name model.onnx 2>/dev/null | sort)
        [ ${#cases[@]} -gt 0 ] || { printf 'ONNX test cases are not here (libonnx-testdata)\n' >>"$logs/conformance.log"; return 77; }
        [ -z "$quick" ] || cases=("${cases[@]:0:40}")
        gpu conformance 400 agree --limit 1e-3 --tokens 2 "${cases[@]}" || return
        agree conformance $((${#cases[@]} * 3 / 5))
}

# agree NAME LEAST: so many models at least agree with ref.
agree() {
        local count
        count=$(grep -c '"result":"agrees"' "$logs/$1.jsonl")
        [ "$count" -ge "$2" ] || { printf '%s agree, of at least %s\n' "$count" "$2" >>"$logs/$1.log"; return 1; }
}

# Several at once: ref computes on one core each, and takes most of the time. In bfloat16 EfficientNet-B0 says nothing (perf/gpu).
part_zoo() {
        local model lines=$logs/zoo.lines
        mkdir -p "$lines"
        for model in $zoo; do
                printf '%s %s %s\n' "$model" 1e-4 precision=fp32 "$model" 2e-2 precision=bf16
        done | timeout -k 5 540 xargs -P "$(nproc)" -L 1 bash -c '
                timeout -k 5 400 "$0" agree -O "$5" --limit "$4" "$2/$3.onnx" >"$1/$3-$5" 2>&1 ||
                        printf "%s %s: it differs, failed, or ran for more than 400 s\n" "$3" "$5" >>"$1/failed"' \
                "$build/bin/starling-gpu" "$lines" perf/zoo/skeletons
        grep -h '^{' "$lines"/*-precision=* 2>/dev/null >>"$logs/zoo.jsonl"
        cat "$lines"/* >>"$logs/zoo.log"
        [ ! -s "$lines/failed" ] && agree zoo $(($(wc -w <<<"$zoo") * 2 - $(grep -cw efficientnet-b0 <<<"$zoo")))
}

# In haste one test of each suite.
serve_digits() {
        local filter status=0 filters="module_gpu/* gpu_tuning/* gpu_ensemble/*"
        [ -z "$quick" ] || filters="module_gpu/has_* gpu_tuning/*_never_again gpu_ensemble/is_*"
        set -f
        for filter in $filters; do
                STARLING_TRY_GPU=1 STARLING_PROGRAM=$build/bin/starling STARLING_DIGITS=$PWD/client/examples/digits XDG_CACHE_HOME=$logs/cache \
                        figures serve 240 "$build/bin/gpu-serve" --filter "$filter" || status=1
        done
        set +f
        return $status
}

# What this host has of the sandbox, in which that it works is to be shown. A second time without it where the first one failed: that
# says whether it is the sandbox.
part_serve() {
        "$build/bin/starling" doctor 2>/dev/null | grep -i landlock >>"$logs/serve.log" ||
                printf 'starling doctor says nothing of Landlock: the sandbox is not all there\n' >>"$logs/serve.log"
        serve_digits && return
        STARLING_GPU_OPEN=1 serve_digits && printf 'it fails in the sandbox, and passes without it\n' >>"$logs/serve.log"
        return 1
}

# The kernels' own tests once more, each access checked. One suite, as it is slow.
part_sanitizer() {
        local checker
        checker=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) ||
                { printf 'compute-sanitizer is neither on the PATH nor in /usr/local/cuda/bin\n' >>"$logs/sanitizer.log"; return 77; }
        STARLING_TRY_GPU=1 figures sanitizer 400 "$checker" --target-processes all --error-exitcode 9 "$build/bin/gpu-own" --filter known_nodes/
}

part_latency() {
        local model precision status=0
        for model in $benchmarked; do
                for precision in fp32 bf16; do
                        gpu latency 120 time -O precision=$precision --tune 60 --batch 1 --seconds "$seconds" "$(skeleton "$model")" || status=1
                done
        done
        return $status
}

# The same by the first candidates, which nobody has timed.
part_untimed() {
        local model precision status=0
        for model in $benchmarked; do
                for precision in fp32 bf16; do
                        gpu untimed 120 time -O precision=$precision --batch 1 --seconds "$seconds" "$(skeleton "$model")" || status=1
                done
        done
        return $status
}

part_throughput() {
        local model batch status=0
        for model in $benchmarked; do
                for batch in 8 64; do
                        [ -z "$quick" ] || batch=4
                        gpu throughput 200 time -O precision=bf16 --tune 60 --batch $batch --at-once 3 --seconds "$seconds" "$(skeleton "$model")" || status=1
                done
        done
        return $status
}

# Samples that come one by one, each copied to its slot, against one copy of the batch.
# Whole and split; and split out of memory that is mapped read-only, as clients' is where a GPU does not write to it.
part_copies() {
        local batch=${quick:+4} status=0 how
        batch=${batch:-64}
        for how in "1" "$batch" "$batch --read-only"; do
                # shellcheck disable=SC2086 # two words
                gpu copies 200 time -O precision=bf16 --batch "$batch" --pieces $how --at-once 3 --seconds "$seconds" "$(skeleton "$one")" || status=1
        done
        return $status
}

part_completions() {
        local way status=0
        for way in "" --words; do
                gpu completions 120 time -O precision=bf16 $way --batch 1 --seconds "$seconds" "$(skeleton "$one")" || status=1
        done
        return $status
}

part_shares() {
        local percent status=0
        for percent in 25 50 75 100; do
                gpu shares 120 time -O precision=bf16 --percent $percent --batch 1 --seconds "$seconds" "$(skeleton "$one")" || status=1
        done
        return $status
}

part_memory() { gpu memory 120 memory --batch 32 "$(skeleton "$one")"; }

part_pytorch() {
        LD_LIBRARY_PATH=$own_path python3 -c 'import torch' 2>/dev/null || { printf 'PyTorch is not installed\n' >>"$logs/pytorch.log"; return 77; }
        LD_LIBRARY_PATH=$own_path figures pytorch 500 python3 perf/gpu/peer.py --seconds "$seconds"
}

parts="device own zoo serve launch lets latency untimed throughput completions copies shares memory pytorch conformance sanitizer"

# ---- what is written ----

# A table of flat objects: a row for each, a column for each name of the first with as many.
table() {
        awk '{
                line = substr($0, 2, length($0) - 2)
                n = split(line, fields, ",")
                head = rule = row = "|"
                for (i = 1; i <= n; i++) {
                        at = index(fields[i], ":")
                        name = substr(fields[i], 1, at - 1); value = substr(fields[i], at + 1)
                        gsub(/"/, "", name); gsub(/"/, "", value)
                        head = head " " name " |"; rule = rule "---|"; row = row " " value " |"
                }
                if (head != last) { print (last == "" ? "" : "\n") head "\n" rule; last = head }
                print row
        }' "$1"
}

write_results() {
        local name first=1
        {
                printf '{"date":"%s","command":"%s","driver":"%s","processor":"%s","results":{' "$(date -u +%FT%TZ)" "$command_line" "$driver" "$processor"
                for name in $chosen; do
                        [ $first = 1 ] || printf ','
                        first=0
                        printf '"%s":{"verdict":"%s","seconds":%s,"figures":[' "$name" "${verdicts[$name]}" "${took[$name]}"
                        [ ! -s "$logs/$name.jsonl" ] || paste -sd, "$logs/$name.jsonl" | tr -d '\n'
                        printf ']}'
                done
                printf '}}\n'
        } >"$base.json"
        {
                printf '# A GPU, checked and measured\n\n`%s`, %s\n\nDriver: %s. Processor: %s.\n' "$command_line" "$(date -u +%F)" "$driver" "$processor"
                for name in $chosen; do
                        printf '\n## %s: %s (%s s)\n\n' "$name" "${verdicts[$name]}" "${took[$name]}"
                        [ ! -s "$logs/$name.jsonl" ] || table "$logs/$name.jsonl"
                done
        } >"$base.md"
}

# Why it did not pass: the last line of the log that is no figure.
reason_of() {
        grep -v '^[{$]' "$logs/$1.log" | tail -n 1 | cut -c 1-200 | tr -d '"\\'
}

run_part() {
        local name=$1 start=$SECONDS status
        say "$name"
        : >"$logs/$name.log"
        "part_$name"
        status=$?
        took[$name]=$((SECONDS - start))
        case $status in
        0) verdicts[$name]=passed ;;
        77) verdicts[$name]="not run: $(reason_of "$name")" ;;
        *) verdicts[$name]="failed: $(reason_of "$name")"; failed=1 ;;
        esac
        say "$name: ${verdicts[$name]} (${took[$name]} s)"
        write_results
}

# ---- from here on ----

command_line="tools/gpu-check.sh $*"
out=perf/results
only="" quick="" seconds=5 failed=0
zoo="vgg16 bert-base vit-small inceptionv3 xception resnext50 resnet50 densenet121 resnet18 googlenet lstm gru minilm efficientnet-b0 mobilenetv2 squeezenet mobilenetv3 shufflenetv2 transformer-tiny lenet" # the long ones first
benchmarked="resnet50 bert-base" one=resnet50
declare -A verdicts took

if [ "${1:-}" = pack ]; then
        [ $# -ge 2 ] && [ $# -le 3 ] || { say "pack ARCHIVE.tar.xz [BUILD]" >&2; exit 2; }
        pack "${@:2}"
        exit
fi
while [ $# -gt 0 ]; do
        case $1 in
        --out) out=${2:?--out wants a folder}; shift ;;
        --only) only=${2:?--only wants names of parts}; shift ;;
        --quick) quick=1 seconds=0.2 zoo="lenet transformer-tiny" benchmarked=lenet one=lenet ;; # whether all parts run, not how fast
        --list) printf '%s\n' $parts; exit 0 ;;
        --help | -h) sed -n '3,/^set /{/^set /!s/^# \{0,1\}//p}' "tools/${0##*/}"; exit 0 ;;
        *) say "no option \"$1\"; tools/gpu-check.sh --help lists all" >&2; exit 2 ;;
        esac
        shift
done
chosen=${only:+${only//,/ }}
chosen=${chosen:-$parts}
for name in $chosen; do
        declare -F "part_$name" >/dev/null || { say "no part $name; --list shows all" >&2; exit 2; }
done

build=$(find_build) || exit 2
own_path=${LD_LIBRARY_PATH:-}
LD_LIBRARY_PATH=$own_path$(find_nvidia)$(find_libraries)
export LD_LIBRARY_PATH
LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}
what=$("$build/bin/starling-gpu" device 2>&1)
case $? in
0) ;;
3) say "${what#starling-gpu: }" >&2; exit 3 ;;
*) say "$what" >&2; exit 1 ;;
esac
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
[ -n "$driver" ] || driver=$(sed -n 's/^NVRM version: *//p' /proc/driver/nvidia/version 2>/dev/null)
driver=${driver:-not said}
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
device=$(printf '%s' "$what" | sed 's/.*"device":"\([^"]*\)".*/\1/; s/[^A-Za-z0-9]\{1,\}/-/g' | tr '[:upper:]' '[:lower:]')
mkdir -p "$out"
base=$out/gpu-$device-$(date -u +%F)${only:+-${only//,/-}}
logs=$base.logs
rm -rf "$logs"
mkdir -p "$logs"
logs=$(cd "$logs" && pwd)
for name in $chosen; do
        verdicts[$name]="not reached" took[$name]=0
done
say "$what"
for name in $chosen; do
        run_part "$name"
done
rm -rf "$logs/out" "$logs/cache" "$logs/zoo.lines"
say "$base.json, $base.md"
exit $failed
