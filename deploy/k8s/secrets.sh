#!/usr/bin/env bash
# The Secrets that the other files name: secrets.sh TLS-FOLDER [kubectl options, as --namespace NAME]
# TLS-FOLDER is that of tls.sh, made with --host streamkernel-scheduler --host fit-scheduler --host streamkernel-service.
set -euo pipefail

tls=${1:?usage: secrets.sh TLS-FOLDER [kubectl options]}
shift
for role in scheduler worker client service; do
  kubectl create secret generic "streamkernel-tls-$role" "$@" \
    --from-file=ca.crt="$tls/ca.pem" --from-file=tls.crt="$tls/$role.pem" --from-file=tls.key="$tls/$role-key.pem"
done
# By a pipe: an argument could be read in the list of processes.
openssl rand -hex 32 | kubectl create secret generic streamkernel-token "$@" --from-file=token=/dev/stdin
if [ -n "${AWS_ACCESS_KEY_ID:-}" ]; then
  printenv | grep -E '^AWS_(ENDPOINT_URL|REGION|ACCESS_KEY_ID|SECRET_ACCESS_KEY)=' |
    kubectl create secret generic streamkernel-s3 "$@" --from-env-file=/dev/stdin
fi
