#!/usr/bin/env bash
# Certificates for a cluster: a CA of its own, and one certificate and key for each role, made with openssl.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tls.sh FOLDER [--host NAME|ADDRESS]... [--days N] [--add ROLE]

Makes FOLDER with a new CA (ca.pem, ca-key.pem) and ROLE.pem, ROLE-key.pem for the roles scheduler, worker, client and
service. Give each name and address by which these are reached with --host; localhost, 127.0.0.1 and ::1 are always in.

  --host NAME|ADDRESS  goes into the certificates of scheduler, worker and service; may be repeated
  --days N             days that all are valid (default 365)
  --add ROLE           one more certificate (or, once the old two files are moved away, a renewed one) of the CA that
                       is in FOLDER; ROLE may be any name, client-NAME makes one that can only connect

Nothing is ever overwritten. Keys are readable by their owner alone (mode 600). Keep ca-key.pem off the cluster: who
has it can join it.
TEXT
}

fail() {
  echo "error: $*" >&2
  exit 1
}

folder='' days=365 add='' hosts=(localhost 127.0.0.1 ::1)
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --host | --days | --add)
      [ $# -ge 2 ] || fail "$1 needs a value (tls.sh --help)"
      case $1 in
        --host) hosts+=("$2") ;;
        --days) days=$2 ;;
        --add) add=$2 ;;
      esac
      shift 2
      ;;
    -*) fail "there is no option $1 (tls.sh --help)" ;;
    *)
      [ -z "$folder" ] || fail "one folder, not also $1 (tls.sh --help)"
      folder=$1
      shift
      ;;
  esac
done
[ -n "$folder" ] || fail "name the folder that shall hold the certificates (tls.sh --help)"
[[ $days =~ ^[1-9][0-9]{0,4}$ ]] || fail "--days must be a whole number from 1 to 99999, not '$days'"
[[ -z $add || $add =~ ^[a-z][a-z0-9-]{0,39}$ ]] || fail "--add must be a name of a-z, 0-9 and -, not '$add'"
case $add in ca | *-key) fail "--add $add: that name is taken" ;; esac
command -v openssl >/dev/null || fail "openssl is not installed"

names=''
for host in "${hosts[@]}"; do
  if [[ $host =~ ^[0-9]{1,3}(\.[0-9]{1,3}){3}$ || $host == *:* ]]; then
    kind=IP
  elif [[ $host =~ ^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$ ]]; then
    kind=DNS
  else
    fail "--host '$host' is neither a name nor an address"
  fi
  # A comma would begin a name of another kind.
  case $host in *[!A-Za-z0-9_.:*-]*) fail "--host '$host' is neither a name nor an address" ;; esac
  names+="${names:+,}$kind:$host"
done

umask 077
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# OpenSSL's chatter is shown only where it fails.
quietly() {
  "$@" 2>"$scratch/said" || {
    cat "$scratch/said" >&2
    fail "openssl failed"
  }
}

new_key() {
  quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

make_ca() {
  cat >"$scratch/ca.cnf" <<'TEXT'
[req]
distinguished_name = name
x509_extensions = ca
prompt = no
[name]
CN = streamkernel CA
[ca]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
TEXT
  new_key "$scratch/ca-key.pem"
  quietly openssl req -x509 -new -sha256 -config "$scratch/ca.cnf" -key "$scratch/ca-key.pem" -days "$days" \
    -out "$scratch/ca.pem"
}

# Scheduler and workers connect to each other, both ways; the service serves HTTPS and connects to the scheduler.
make_role() {
  local role=$1 usage="serverAuth, clientAuth" alternative="subjectAltName = $names"
  case $role in client | client-*) usage=clientAuth alternative='' ;; esac
  cat >"$scratch/$role.cnf" <<TEXT
[req]
distinguished_name = name
prompt = no
[name]
CN = $role
[role]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = $usage
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
$alternative
TEXT
  new_key "$scratch/$role-key.pem"
  quietly openssl req -new -sha256 -config "$scratch/$role.cnf" -key "$scratch/$role-key.pem" -out "$scratch/$role.csr"
  quietly openssl x509 -req -sha256 -in "$scratch/$role.csr" -CA "$scratch/ca.pem" -CAkey "$scratch/ca-key.pem" \
    -set_serial "0x$(openssl rand -hex 16)" -days "$days" -extfile "$scratch/$role.cnf" -extensions role \
    -out "$scratch/$role.pem"
}

if [ -n "$add" ]; then
  for name in ca.pem ca-key.pem; do
    [ -f "$folder/$name" ] || fail "$folder/$name is not there; --add needs the CA that tls.sh made"
    cp "$folder/$name" "$scratch/$name"
  done
  roles=("$add")
  files=("$add.pem" "$add-key.pem")
else
  make_ca
  roles=(scheduler worker client service)
  files=(ca.pem ca-key.pem)
  for role in "${roles[@]}"; do files+=("$role.pem" "$role-key.pem"); done
fi
for name in "${files[@]}"; do
  [ ! -e "$folder/$name" ] || fail "$folder/$name exists; nothing is overwritten: choose another folder or move it away"
done
for role in "${roles[@]}"; do make_role "$role"; done

mkdir -p "$folder"
for name in "${files[@]}"; do
  case $name in *-key.pem) mode=600 ;; *) mode=644 ;; esac
  chmod "$mode" "$scratch/$name"
  # -n: two runs at once do not replace each other's files.
  mv -n "$scratch/$name" "$folder/$name"
  [ ! -e "$scratch/$name" ] || fail "$folder/$name was made by somebody else in the meantime"
done
echo "made ${files[*]} in $folder: valid for $days days, for ${hosts[*]}"
