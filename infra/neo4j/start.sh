#!/usr/bin/env bash
# Runs a real Neo4j Community 5 from Maven Central on loopback, in the foreground, until it is told to stop.
#
#   start.sh [DATA_FOLDER]      without a folder: a temporary one, removed at the end
#   NEO4J_PORT                  the Bolt port; without it, a free one
#
# When it answers it prints one line: NEO4J_URI=… NEO4J_USER=neo4j NEO4J_PASSWORD=…
# Exit 3: this machine cannot run it (no Java, no Maven, Maven Central out of reach); stderr says which.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lib=$here/target/lib
wait_s=${NEO4J_START_TIMEOUT:-120}

unavailable() { echo "neo4j: $1" >&2; exit 3; }

command -v java >/dev/null || unavailable "no java on PATH (17 or 21 is needed)"

if [ ! -e "$lib/.complete" ]; then
  command -v mvn >/dev/null || unavailable "no mvn on PATH, and the jars are not in $lib yet"
  mkdir -p "$lib"
  # Artifacts of different groups share file names; the group before the name keeps them apart.
  mvn -B -q -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$lib" -Dmdep.prependGroupId=true \
    >"$here/target/mvn.log" 2>&1 ||
    unavailable "Maven could not fetch Neo4j: $(grep -m1 -F '[ERROR]' "$here/target/mvn.log" || tail -n1 "$here/target/mvn.log")"
  touch "$lib/.complete"
fi

server=
temporary=
finish() {
  trap - EXIT TERM INT
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  if [ -n "$temporary" ]; then rm -rf "$temporary"; fi
}
trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

if [ $# -ge 1 ]; then
  home=$1
else
  temporary=$(mktemp -d)
  home=$temporary
fi
mkdir -p "$home/conf" "$home/logs"
home=$(cd "$home" && pwd)

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

port=${NEO4J_PORT:-}
while [ -z "$port" ]; do
  port=$((20000 + RANDOM % 12000))
  if listens "$port"; then port=; fi
done

cat >"$home/conf/neo4j.conf" <<CONF
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:$port
server.bolt.advertised_address=127.0.0.1:$port
server.http.enabled=false
server.https.enabled=false
server.memory.heap.initial_size=256m
server.memory.heap.max_size=512m
server.memory.pagecache.size=64m
dbms.usage_report.enabled=false
dbms.security.auth_enabled=true
CONF

export NEO4J_HOME=$home NEO4J_CONF=$home/conf
if [ ! -e "$home/password" ]; then
  umask 077
  password=$(od -An -N18 -tx1 /dev/urandom | tr -d ' \n')
  # In a file rather than as arguments: those anyone on the machine can read.
  printf '%s\n' -cp "\"$lib/*\"" org.neo4j.cli.AdminTool dbms set-initial-password "$password" >"$home/setup.args"
  java "@$home/setup.args" >"$home/logs/setup.log" 2>&1 || { cat "$home/logs/setup.log" >&2; exit 1; }
  rm "$home/setup.args"
  printf '%s' "$password" >"$home/password"
fi

: >"$home/logs/neo4j.log"
java -Xms256m -Xmx512m -cp "$lib/*" org.neo4j.server.CommunityEntryPoint \
  --home-dir="$home" --config-dir="$home/conf" >"$home/logs/console.log" 2>&1 &
server=$!

deadline=$((SECONDS + wait_s))
until grep -q 'Started\.' "$home/logs/neo4j.log" && listens "$port"; do
  if ! kill -0 "$server" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
    echo "neo4j: it did not come up; its log ends:" >&2
    tail -n 20 "$home/logs/neo4j.log" "$home/logs/console.log" >&2
    exit 1
  fi
  sleep 0.3
done

echo "NEO4J_URI=bolt://127.0.0.1:$port NEO4J_USER=neo4j NEO4J_PASSWORD=$(cat "$home/password")"
wait "$server"
