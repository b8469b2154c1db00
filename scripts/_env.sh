# shellcheck shell=bash
# Sourced by the scripts beside it: sets $root and $python, the interpreter of an up-to-date .venv in the repository.
# Installs only when pyproject.toml, constraints.txt, the Python version or the repository's path changed.
# STREAMKERNEL_CONSTRAINTS=constraints-NAME.txt: other versions, in an environment of their own, .venv-NAME.
# STREAMKERNEL_EXTRA: what is installed in it, `dev` unless named; only scripts/docs names another.

set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
constraints=${STREAMKERNEL_CONSTRAINTS:-constraints.txt}
extra=${STREAMKERNEL_EXTRA:-dev}
venv="$root/.venv"
if [ "$constraints" != constraints.txt ]; then
  venv="$root/.venv-$(basename -- "${constraints#constraints-}" .txt)"
fi
python="$venv/bin/python"
stamp="$venv/streamkernel.stamp"

# Another checkout on the path would be tested in place of this one.
unset PYTHONPATH PYTHONHOME
# Hundreds of processes are started by the tests: none compiles again what another one has compiled.
unset PYTHONDONTWRITEBYTECODE

# For scripts that run the tests: sets $in_processes, arguments of pytest. It is one process more than cores: some test of
# another always waits, for a server, a lock or the end of a process. A file is run by one process: its fixtures are made
# once. The files with few tests, which are slow ones, would come last if xdist sorted them, and one process would wait for
# the other.
share_the_cores() {
  local cores
  # With a thread of BLAS for each core in all processes, these wait for each other: a solve of twenty rows then takes a
  # millisecond. Fits limit BLAS themselves; oracles and single parts of them do not.
  export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}
  cores=$(getconf _NPROCESSORS_ONLN)
  # shellcheck disable=SC2034  # read where this is sourced
  in_processes=(-n "$((cores < 7 ? cores + 1 : 8))" --dist loadfile --no-loadscope-reorder)
}

find_python() {
  local candidate
  # 3.11 first: it is what constraints.txt was resolved with.
  for candidate in ${STREAMKERNEL_PYTHON:+"$STREAMKERNEL_PYTHON"} python3.11 python3.12 python3.13 python3.14 python3 python; do
    # A version manager's shim may stand on the path and still refuse to run: ask, do not trust the name.
    if "$candidate" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  echo "no Python 3.11 or newer found; install one, or name it: STREAMKERNEL_PYTHON=/path/to/python3.11" >&2
  return 1
}

# Two lines: whose environment it is (a moved or copied repository needs a new one), and what is installed in it.
wanted_stamp() {
  "$1" -I - "$root" "$constraints" <<'PY'
import hashlib, pathlib, sys

root = pathlib.Path(sys.argv[1])
contents = hashlib.sha256()
for name in ("pyproject.toml", sys.argv[2]):
    contents.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
print(hashlib.sha256(f"{sys.version}\0{root}".encode()).hexdigest())
print(contents.hexdigest())
PY
}

is_current() {
  [ -x "$python" ] && [ -f "$stamp" ] && [ "$(wanted_stamp "$python" 2>/dev/null)" = "$(cat "$stamp")" ]
}

install_environment() {
  local base wanted
  # The first line of the stamp still fits: update in place. Anything else (absent: an install was interrupted) starts anew.
  if ! { [ -x "$python" ] && [ -f "$stamp" ] &&
    [ "$(wanted_stamp "$python" 2>/dev/null | head -n 1)" = "$(head -n 1 "$stamp")" ]; }; then
    base=$(find_python)
    echo "creating $venv with $base" >&2
    "$base" -m venv --clear "$venv"
  fi
  wanted=$(wanted_stamp "$python")
  rm -f "$stamp"
  echo "installing streamkernel and its tools into $venv (once)" >&2
  (cd "$root" && "$python" -m pip install -qq --disable-pip-version-check -c "$constraints" -e ".[$extra]") >&2
  # Last, and in one step: a stamp means that everything before it was done.
  printf '%s\n' "$wanted" >"$stamp.new"
  mv "$stamp.new" "$stamp"
}

# scripts/pin resolves versions anew: it must not need those of before.
if [ -z "${STREAMKERNEL_NO_INSTALL:-}" ] && ! is_current; then
  (
    # Two scripts started together: one installs, the other waits and finds it done.
    if command -v flock >/dev/null 2>&1; then flock 9 || true; fi
    if ! is_current; then install_environment 9<&-; fi
  ) 9<"$root"
fi
