#!/usr/bin/env bash
# Install gpuwarden on a machine without Kubernetes: a virtual environment from the lock, a configuration, two services.
#
#   deploy/install.sh [--agent-only]   install or upgrade; a configuration that is there is left alone
#   deploy/install.sh --uninstall      remove program and services; --purge also configuration and state
#
# PREFIX (/opt/gpuwarden) is where the program goes. With DESTDIR everything is put below that directory and nothing of
# this machine is touched, for packages and images. WHEELS names a directory to install from without a network, LOCK
# another lock file.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
PREFIX=${PREFIX:-/opt/gpuwarden} DESTDIR=${DESTDIR:-} LOCK=${LOCK:-$here/requirements/runtime.txt} WHEELS=${WHEELS:-}
GROUP=gpuwarden-config
services=(gpuwarden-agent gpuwarden-daemon)
target=$DESTDIR$PREFIX config=$DESTDIR/etc/gpuwarden units=$DESTDIR/etc/systemd/system

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit "$1"; }
die() { echo "$*" >&2; exit 1; }

action=install purge=
for argument; do
  case $argument in
    --agent-only) services=(gpuwarden-agent) ;;
    --uninstall) action=uninstall ;;
    --purge) purge=yes ;;
    -h | --help) usage 0 ;;
    *) usage 2 >&2 ;;
  esac
done
[ -n "$DESTDIR" ] || [ "$(id -u)" = 0 ] || die "only root can install into $PREFIX; give DESTDIR to install elsewhere"
case $PREFIX in /*[!/]) ;; *) die "PREFIX has to be an absolute path below /" ;; esac

# Whether services are to be started: not below DESTDIR, and not where another init runs.
systemd_runs() { [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; }

install_program() {
  if [ ! -x "$target/bin/python" ]; then
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "Python 3.11 or later is needed; this is $(python3 --version)"
    python3 -m venv "$target"
  fi
  local pip=("$target/bin/python" -m pip --disable-pip-version-check -q) from=()
  [ -z "$WHEELS" ] || from=(--no-index --find-links "$WHEELS")
  "${pip[@]}" install --only-binary :all: --require-hashes ${from[@]+"${from[@]}"} -r "$LOCK"
  # Built from a copy, so that the source tree stays as it is; the build tool is in the lock.
  local copy
  copy=$(mktemp -d)
  cp -r "$here/pyproject.toml" "$here/README.md" "$here/LICENSE" "$here/monitor" "$copy"
  "${pip[@]}" install --no-index --no-deps --no-build-isolation --force-reinstall "$copy"
  rm -rf "$copy"
  install -D -m 0644 "$here/README.md" "$target/share/README.md"
  # What was installed below DESTDIR will be found without it.
  [ -z "$DESTDIR" ] || { grep -rlIZ -- "$target" "$target/bin" "$target/pyvenv.cfg" || true; } | xargs -0 -r sed -i "s|$target|$PREFIX|g"
}

install_config() {
  mkdir -p "$config"
  if [ -z "$DESTDIR" ]; then
    getent group "$GROUP" >/dev/null || groupadd --system "$GROUP"
    chgrp "$GROUP" "$config"
  fi
  chmod 0750 "$config"
  if [ ! -e "$config/gpuwarden.yml" ]; then
    (umask 0027 && cat >"$config/gpuwarden.yml") <<'CONFIG'
# gpuwarden: everything has a default. `gpuwarden check-config /etc/gpuwarden/gpuwarden.yml` says what is wrong.
# Files with tokens and the private key of actions (gpuwarden keys) belong to the group gpuwarden-config, mode 0640.
#agent:
#  listen: 0.0.0.0:9835                      # for a daemon on another machine; give it a token then
#  token_file: /etc/gpuwarden/token
#  mounts: [/mnt/share]
#  registries: [harbor.example.com]
#daemon:
#  agents: {static: [gpu-01:9835, gpu-02:9835], token_file: /etc/gpuwarden/token}
#  alerts: {language: zh, receivers: [{name: ops, url_file: /etc/gpuwarden/wecom-url}]}
CONFIG
    [ -n "$DESTDIR" ] || chgrp "$GROUP" "$config/gpuwarden.yml"
  fi
}

install_units() {
  mkdir -p "$units"
  local service
  for service in "${services[@]}"; do
    sed "s|/opt/gpuwarden/|$PREFIX/|g" "$here/deploy/systemd/$service.service" >"$units/$service.service"
    chmod 0644 "$units/$service.service"
  done
  if systemd_runs; then
    systemctl daemon-reload
    systemctl enable --quiet "${services[@]}"
    systemctl restart "${services[@]}"
  fi
}

uninstall() {
  local service
  for service in gpuwarden-daemon gpuwarden-agent; do
    if systemd_runs && [ -e "$units/$service.service" ]; then systemctl disable --quiet --now "$service"; fi
    rm -f "$units/$service.service"
  done
  if systemd_runs; then systemctl daemon-reload; fi
  # Only what looks like ours: PREFIX may have been mistyped.
  if [ -e "$target" ]; then
    [ -e "$target/pyvenv.cfg" ] || die "$target is not an installation of gpuwarden; it is left alone"
    rm -rf "$target"
  fi
  [ -n "$purge" ] || { echo "removed; /etc/gpuwarden and /var/lib/gpuwarden* are kept (--purge removes them)"; return; }
  rm -rf "$config" "$DESTDIR/var/lib/gpuwarden" "$DESTDIR/var/lib/private/gpuwarden" "$DESTDIR/var/lib/gpuwarden-agent"
  if [ -z "$DESTDIR" ] && getent group "$GROUP" >/dev/null; then groupdel "$GROUP"; fi
  echo "removed, with configuration and state"
}

if [ "$action" = uninstall ]; then
  uninstall
  exit 0
fi
install_program
install_config
install_units
if systemd_runs; then
  echo "running: the page is on http://127.0.0.1:9836; settings are in /etc/gpuwarden/gpuwarden.yml"
else
  echo "installed into $target; start by: $PREFIX/bin/gpuwarden up --config /etc/gpuwarden/gpuwarden.yml"
fi
