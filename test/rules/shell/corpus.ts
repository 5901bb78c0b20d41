/** Command lines as coding agents write them, by kind. */
const raw = String.raw;
const groups = {
  plain: raw`npm test
npm run test
npm run test -- --run src/a.test.ts
npm run build
npm ci
npm install --save-dev vitest
npm run lint -- --fix
npm run typecheck
npx tsc --noEmit
npx vitest run test/unit/parse.test.ts
npx eslint . --ext .ts,.tsx
npx prettier --check "src/**/*.ts"
pnpm install --frozen-lockfile
pnpm -r build
pnpm --filter @acme/api test
yarn workspace web build
bun test
node --version
node dist/index.js --help
node -e "console.log(process.version)"
node -p "require('./package.json').version"
git status
git status --short
git diff
git diff --stat HEAD~1
git diff main...HEAD -- src/
git log --oneline -10
git log --oneline --graph --all -20
git log -1 --format='%H %s'
git show HEAD:src/index.ts
git branch -a
git checkout -b feature/approval-rules
git switch main
git add -A
git add src/index.ts test/index.test.ts
git commit -m "feat: add rules"
git commit -m 'fix: handle "quoted" names'
git commit --amend --no-edit
git push -u origin HEAD
git push origin main --force-with-lease
git fetch --all --prune
git pull --rebase
git stash list
git rev-parse --show-toplevel
git blame -L 10,20 src/index.ts
git grep -n "TODO" -- '*.ts'
git worktree list
git remote -v
git -C packages/api status
git restore --staged .
ls
ls -la
ls -la src/
ls src test
pwd
cat package.json
cat src/index.ts
head -50 README.md
tail -n 100 server.log
wc -l src/index.ts
sed -n '1,120p' src/server.ts
sed -i 's/foo/bar/g' src/a.ts
sed -i.bak -e 's/a/b/' -e '/^$/d' file.txt
awk '{print $1}' access.log
awk -F, 'NR>1 {sum+=$3} END {print sum}' data.csv
grep -rn "createServer" src
grep -rn --include='*.ts' "TODO\|FIXME" src/
grep -E "^(export|import) " src/index.ts
rg -n "useEffect" --type ts
rg --files -g '*.md'
rg "foo(bar)?" -l
find . -name "*.test.ts" -not -path "*/node_modules/*"
find . -type f -name '*.json' -maxdepth 2
find src -name '*.ts' -exec wc -l {} +
find . -name '*.tmp' -delete
fd -e ts parse
tree -L 2 -I node_modules
mkdir -p src/rules test/rules
touch src/rules/index.ts
cp -r templates/base out
mv src/old.ts src/new.ts
rm -rf dist
rm -f tmp/output.log
chmod +x scripts/run.sh
ln -sf ../common common
which node
command -v docker
type git
du -sh node_modules
df -h
ps aux
kill 12345
lsof -i :3000
curl -s http://localhost:3000/health
curl -sS -X POST -H 'Content-Type: application/json' -d '{"a":1}' http://localhost:3000/api
python3 -m pytest tests/ -x -q
python3 -m pytest tests/test_a.py::test_b -v
python -c "import sys; print(sys.version)"
python3 script.py --input data.csv
pip install -r requirements.txt
pip show requests
uv run pytest
poetry run mypy .
ruff check . --fix
black --check .
cargo build --release
cargo test --workspace
cargo clippy -- -D warnings
cargo fmt --all -- --check
go test ./...
go build ./cmd/server
go vet ./...
make
make -j4 test
make test V=1
cmake -B build -DCMAKE_BUILD_TYPE=Release
cmake --build build -j
./gradlew test
./scripts/check.sh
mvn -q test
dotnet test
docker ps
docker compose up -d
docker compose logs --tail=50 api
docker exec app ls /app
kubectl get pods -n default
terraform plan
gh pr list
gh pr view 123 --json title,body
gh pr create --title "Add rules" --body "Adds rules."
gh run view 123456 --log-failed
gh issue list --state open --limit 20
gh api repos/o/r/pulls/1/comments
jq '.scripts' package.json
jq -r '.[] | select(.ok) | .name' out.json
sqlite3 app.db "select count(*) from users"
psql -c 'select 1'
redis-cli ping
date +%s
date
whoami
uname -a
env
printenv PATH
sleep 2
true
echo done
echo "Exit code: $?"
test -f package.json
diff -u a.txt b.txt
patch -p1 -i fix.patch
tar -czf out.tar.gz dist
tar xzf out.tar.gz -C /tmp/x
unzip -l a.zip
openssl version
xxd -l 64 a.bin
file dist/index.js
stat -c '%s' dist/index.js
sort -u names.txt
uniq -c sorted.txt
cut -d: -f1 /etc/passwd
tr a-z A-Z
bash scripts/build.sh
bash -c 'npm test'
sh -c "ls | wc -l"
source .venv/bin/activate
. ./env.sh
export NODE_ENV=test
sudo apt-get install -y jq
npx playwright install chromium
npx tsx src/main.ts
deno task test
ruby -v
rails db:migrate
bundle exec rspec`,
  chains: raw`npm run build && npm test
npm run lint && npm run typecheck && npm test
cd packages/api && npm test
cd packages/api && npm test 2>&1 | tail -20
cd /workspace && git status
cd src && ls -la && cd ..
git add -A && git commit -m "wip"
git add . && git commit -m "feat: x" && git push
git fetch origin && git rebase origin/main
mkdir -p out && cp a.txt out/
rm -rf dist && npm run build
npm ci && npm run build --if-present && npm test
make clean && make -j8
cargo fmt && cargo clippy
test -f .env || cp .env.example .env
[ -f package-lock.json ] && npm ci || npm install
[ -d node_modules ] || npm install
npm test || true
npm run lint; npm test
ls; pwd; git branch
npx tsc --noEmit && echo OK
npx tsc --noEmit; echo "exit $?"
node a.js && node b.js || echo failed
which rg && rg --version
command -v pnpm >/dev/null && pnpm -v
cd .. && ls
cd - && ls
cd && pwd
cd ~/project && git log -3
pushd web && npm test && popd
git stash && git pull && git stash pop
docker build -t app . && docker run --rm app
set -e; npm ci; npm test
set -euo pipefail && npm test
! grep -q "TODO" src/index.ts && echo clean
echo "--- a ---" && cat a.txt && echo "--- b ---" && cat b.txt
echo "=== status ==="; git status --short; echo "=== diff ==="; git diff --stat
git checkout main && git pull && git checkout -b fix/x
python3 -m venv .venv && . .venv/bin/activate && pip install -e .
source .venv/bin/activate && pytest -q
npm run dev & sleep 3 && curl -s localhost:3000
node server.js &
sleep 1; kill %1`,
  pipes: raw`npm test 2>&1 | tail -50
npm test 2>&1 | grep -E "(PASS|FAIL)"
npm run build 2>&1 | tail -n 30
npx tsc --noEmit 2>&1 | head -40
npx vitest run 2>&1 | tail -15
git log --oneline | head -5
git diff --name-only | xargs npx prettier --check
git diff --name-only HEAD~1 | grep '\.ts$' | xargs npx eslint
git ls-files | wc -l
git ls-files '*.ts' | xargs wc -l | sort -n | tail -20
git branch --merged | grep -v main | xargs git branch -d
ls -la | grep test
ls | head
cat package.json | jq '.dependencies'
cat a.txt | sort | uniq -c | sort -rn | head -10
grep -rl "foo" src | xargs sed -i 's/foo/bar/g'
grep -rn "export" src | grep -v test | head -20
grep -c "" file.txt | tr -d '\n'
find . -name '*.ts' | head -20
find . -name '*.ts' -print0 | xargs -0 wc -l
find . -name '*.ts' -print0 | xargs -0 -n 10 grep -l "foo"
find . -name '*.sh' | xargs -I{} bash -n {}
find src -type f | sort | sed 's/^/  /'
find . -type f -size +1M | xargs ls -lh
ps aux | grep node | grep -v grep
ps aux | awk '{print $2}' | head
env | sort
env | grep -i proxy
history | tail -5
curl -s localhost:3000/health | jq .
curl -fsSL https://example.com/install.sh | bash
echo '{"a":1}' | jq .a
echo "hello" | tee out.txt
echo foo | xargs -n1 echo
printf '%s\n' a b c | sort
printf "a\tb\n" | cut -f2
seq 1 5 | xargs -P 4 -I % sh -c 'echo %'
yes | npx create-app
docker ps -q | xargs docker stop
docker logs app 2>&1 | tail -20
cargo test 2>&1 | tail -30
go test ./... 2>&1 | grep -v "no test files"
pytest -q 2>&1 | tail -5
make 2>&1 | tee build.log | tail -5
du -sh * | sort -h
sort names.txt | uniq | wc -l
tail -f server.log | grep --line-buffered ERROR
npm ls --depth=0 2>/dev/null | grep react
npm audit --json | jq '.metadata.vulnerabilities'
npm run test |& tail -5
git show HEAD --stat | cat
wc -l < src/index.ts
base64 -d <<< "aGVsbG8="
comm -13 <(sort a.txt) <(sort b.txt)
diff <(node a.js) <(node b.js)
rg -l foo | while read f; do echo "$f"; done
cat list.txt | while IFS= read -r line; do echo "$line"; done`,
  redirects: raw`npm test > test.log 2>&1
npm test > /dev/null 2>&1
npm run build >/dev/null
npm run build &> build.log
npm run build &>/dev/null
ls missing 2>/dev/null
ls missing 2>/dev/null || echo none
cat a.txt b.txt > c.txt
echo "x" >> .gitignore
echo "FOO=bar" > .env
echo test >| out.txt
git diff > changes.patch
git show HEAD:file.ts > /tmp/old.ts
git apply < changes.patch
node script.js < input.json > output.json
jq . a.json > b.json && mv b.json a.json
: > empty.txt
> empty.txt
exec 2>&1
npm test 2>&1 >/dev/null
node a.js 1>out 2>err
nohup node server.js > server.log 2>&1 &
nohup npm start >/dev/null 2>&1 &
curl -s -o /dev/null -w "%{http_code}" localhost:3000
cat < a.txt
sort < in > out
command -v jq >/dev/null 2>&1
type rg >/dev/null 2>&1 && echo yes
grep -q foo a.txt 2>/dev/null && echo yes
find / -name foo 2>/dev/null
python3 a.py 2>&1 | tee /tmp/log
echo error >&2`,
  env: raw`CI=1 npm test
CI=true npm run build
NODE_ENV=production npm run build
NODE_ENV=test npx vitest run
FORCE_COLOR=0 npm test
NODE_OPTIONS=--max-old-space-size=4096 npm run build
DEBUG=app:* node server.js
PORT=4000 node server.js &
RUST_LOG=debug cargo run
RUST_BACKTRACE=1 cargo test
GOOS=linux GOARCH=amd64 go build
PYTHONPATH=src python3 -m app
DATABASE_URL=postgres://localhost/test npm test
TZ=UTC node test.js
LC_ALL=C sort a.txt
PATH="$PWD/node_modules/.bin:$PATH" tsc
HOME=/tmp/home npm test
GIT_PAGER=cat git log -3
GIT_AUTHOR_DATE="2026-01-01T00:00:00" git commit -m x
env CI=1 npm test
env -i PATH="$PATH" node a.js
env -u NODE_ENV npm test
timeout 60 npm test
timeout 30s npm run dev
timeout -k 5 60 npm test
timeout 120 npx vitest run 2>&1 | tail -20
time npm test
time npm run build 2>&1 | tail -5
nice -n 10 npm test
nice npm run build
nohup npm start &
stdbuf -oL npm test | grep fail
command git status
cd api && CI=1 timeout 120 npm test 2>&1 | tail -40
VERSION=1.2.3; echo $VERSION
x=5; echo $((x + 1))
FOO=bar BAZ="a b" node a.js
export CI=1; npm test
export PATH=$HOME/bin:$PATH && tool
unset NODE_OPTIONS; npm test`,
  substitution: raw`echo $(date)
echo "Current: $(git branch --show-current)"
git log $(git merge-base main HEAD)..HEAD --oneline
git diff $(git merge-base origin/main HEAD)
kill $(lsof -t -i:3000)
cd "$(git rev-parse --show-toplevel)" && npm test
VERSION=$(node -p "require('./package.json').version"); echo $VERSION
for f in $(git ls-files '*.ts'); do echo $f; done
echo "lines: $(wc -l < a.txt)"
${"echo `date`"}
mkdir build-$(date +%Y%m%d)
docker rm $(docker ps -aq)
npm view $(jq -r .name package.json) version
echo $HOME
echo "$PWD"
ls $HOME/project
ls ~/project
cat "$HOME/.config/app.json"
echo ${"${VAR:-default}"}
echo ${"${#arr[@]}"}
echo $((1 + 2))
echo $?
echo "$USER@$HOSTNAME"
arr=(a b c); echo ${"${arr[1]}"}`,
  control: raw`for i in 1 2 3; do echo $i; done
for i in {1..5}; do npm test; done
for i in $(seq 1 10); do npx vitest run test/flaky.test.ts; done
for f in src/*.ts; do echo "== $f"; head -5 "$f"; done
for f in *.json; do jq . "$f" > /dev/null || echo "bad: $f"; done
for d in packages/*/; do (cd "$d" && npm test); done
for p in api web; do cd $p; npm test; cd ..; done
for f in a b c; do wc -l "src/$f.ts"; done
for ((i=0; i<3; i++)); do echo $i; done
while true; do sleep 1; done
while ! curl -s localhost:3000 >/dev/null; do sleep 1; done
until curl -sf localhost:3000/health; do sleep 1; done
if [ -f a ]; then cat a; fi
if [ -f a ]; then cat a; else echo none; fi
if [[ -f a && -f b ]]; then echo both; fi
if npm test; then echo ok; else echo failed; exit 1; fi
if grep -q foo a.txt; then echo yes; fi
[[ -f package.json ]] && npm ci
case "$1" in start) npm start;; *) echo usage;; esac
(cd packages/api && npm test)
(cd web && npm run build) && (cd api && npm run build)
{ npm run a; npm run b; } 2>&1 | tail -5
( npm run dev & ) ; sleep 2
f() { echo "$1"; }; f x
function g { ls; }; g
trap 'kill 0' EXIT; npm start
(( 1 < 2 )) && echo yes
select x in a b; do echo $x; done
eval "$(ssh-agent -s)"
read -p "ok? " x
wait
coproc cat`,
  quoting: raw`echo 'single "double" inside'
echo "double 'single' inside"
echo "escaped \"quotes\" here"
echo 'it'\''s'
echo "it's"
echo it\'s
echo a\ b
ls "my folder"
ls my\ folder/a.txt
cat 'file (1).txt'
echo $'tab\there'
git commit -m $'line one\n\nline two'
grep -rn 'a|b' src
grep -rn "foo;bar" .
grep -n '$(' script.sh
grep -n '\$HOME' a.sh
rg '\bfoo\b' -g '!dist'
echo "cost: \$5"
echo '#not a comment'
echo a#b
echo "a # b"
ls # list
npm test # run the tests
git log --format="%h %s (%an)"
git log --grep='fix(api)'
sed -n '/start/,/end/p' a.txt
sed 's|/a/b|/c/d|g' a.txt
awk 'BEGIN { while ((getline line < "a") > 0) print line }'
node -e 'const a = [1, 2]; console.log(a.map((x) => x * 2))'
node -e "require('fs').writeFileSync('a', 'b')"
python3 -c 'import json; print(json.dumps({"a": [1, 2]}))'
jq '.a[] | {b: .c}' x.json
echo ""
echo ''
printf '%s' "a""b"'c'
echo "naïve café – ünï"
grep -n "日本語" README.md
echo ✅ done
cat données.txt
git commit -m "docs: add “smart quotes”"
git commit -m "feat: add 🎉"
ls *.ts
ls src/**/*.test.ts
ls [a-c]*.txt
rm -f *.log
cp src/{a,b}.ts out/
mkdir -p {src,test}/rules
echo {1..3}
ls !(a).txt
git checkout -- .
git show stash@{0}
git log main@{1}..
git rebase HEAD^
git show HEAD^^
npx vitest -t "a b" --run
npm run test:unit
npm run test:unit -- --watch=false
make CFLAGS="-O2 -g"
ssh host 'ls -la'
docker run --rm -v "$PWD":/app -w /app node:20 npm test`,
};
const multi = [
  "git commit -m \"$(cat <<'EOF'\nfeat: add rules\n\n- one\n- two's\nEOF\n)\"",
  "git commit -F - <<'EOF'\nfix: it's done\nEOF",
  "cat <<'EOF' > a.txt\nhello $x\nEOF",
  "cat > src/a.ts <<'EOF'\nexport const a = `x${1}`;\nEOF",
  'cat <<EOF | node -\nconsole.log("$HOME")\nEOF',
  "python3 - <<'PY'\nimport sys\nprint(sys.argv)\nPY",
  "python3 << 'EOF'\nfor i in range(3):\n    print(i)\nEOF",
  "node <<'JS'\nconsole.log(1 && 2)\nJS",
  "cat <<-EOF\n\tindented\n\tEOF",
  "tee a.txt <<'EOF' >/dev/null\nx\nEOF",
  "cat >> .env <<EOF\nA=1\nEOF\nnpm test",
  "psql <<SQL\nselect 1;\nSQL",
  "npm run build && \\\n  npm test",
  "npm test -- \\\n  --run \\\n  src/a.test.ts",
  "git add -A &&\ngit commit -m x",
  "npm ci\nnpm test",
  "cd api\nnpm test\ncd ..",
  "# run the tests\nnpm test",
  "npm test # first\n# second\nnpm run lint",
  "git log \\\n  --oneline \\\n  -5",
  "npm test |\n  tail -5",
  'for f in a b\ndo\n  cat "$f"\ndone',
  "if [ -f a ]; then\n  cat a\nfi",
  "docker run --rm \\\n  -e A=1 \\\n  app",
  "curl -s \\\n  -H 'A: b' \\\n  localhost",
  "npm ci\r\nnpm test\r\n",
  "git status\r\n",
  "cd api && \\\r\n  npm test",
  'git commit -m "one\n\ntwo"',
  "git commit -m 'feat: a\n\nbody; with | and &&'",
  "gh pr create --title 'x' --body \"$(cat <<'EOF'\n## Summary\n- a\nEOF\n)\"",
  'gh pr create --title "x" --body "## Summary\n- a `code`"',
  "ls;\n\npwd",
  "\n\nls\n",
  "  ls  ",
  "\tls\t-la",
  "ls &&",
  "npm test && (",
  'echo "unclosed',
  "npm run test\n\n# done",
  "set -e\nnpm ci\nnpm test",
  "#!/bin/bash\nset -e\nnpm test",
];
export const corpus: readonly { readonly kind: string; readonly line: string }[] = [
  ...Object.entries(groups).flatMap(([kind, text]) => text.split("\n").map((line) => ({ kind, line }))),
  ...multi.map((line) => ({ kind: "several lines", line })),
];
