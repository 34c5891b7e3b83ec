QUAKE=$EVENT
[ -d examples ] || { mkdir examples; fanfare demo files examples/earthquakes --example earthquakes --subscriptions 1000 > /dev/null; }
echo '{"title":"Earthquakes"}' > service.yaml; fanfare service put earthquakes service.yaml > /dev/null
export FANFARE_SERVICE=news
[ -f subscribers.ndjson ] || echo '{"id":"dan","addresses":[{"kind":"mail","address":"dan@example.com"}]}' > subscribers.ndjson
echo 'data_dir: fanfare-data' > server.yaml
[ -f etc/fanfare/first.pem ] || { fanfare dkim new example.org --selector first --out etc/fanfare/first.pem > /dev/null 2>&1; fanfare backup first.tar > /dev/null; fanfare restore first.tar --data-dir var/lib/fanfare > /dev/null; }
fanfare publish quotes - <<< '{"symbol":"MSFT","price":30}' > /dev/null
MESSAGE=$(fanfare send --to ada@example.com --channel email --subject Hello --text Hello --json | grep -o 'msg-[0-9]*-[0-9a-f]*' | head -1)
DELIVERY=$(fanfare trace --subscriber ada@example.com --json | grep -o 'dlv-[0-9]*-[0-9a-f]*-[0-9]*' | head -1)
./bin/fanfare subscriber put ada-2 - <<< '{"addresses":[{"kind":"mail","address":"ada2@example.com"}]}' > /dev/null 2>&1 || :
sed 's/An earthquake of/It was/' base.json > topics.yaml; cp topics.yaml channels.yaml
[ -f versions ] || { for what in shook trembled; do sed "s/An earthquake of/It $what/" base.json > versions; fanfare apply -f versions > /dev/null; done; fanfare apply -f base.json > /dev/null; }
cp topics.yaml fanfare.yaml
fanfare template draft quake -f fanfare.yaml > /dev/null 2>&1 || :
for to in ada bob; do fanfare subscription put storms-$to - <<< '{"topic":"storms","channel":"mail","to":"'$to'@example.com"}'; done > /dev/null
./bin/fanfare mailbox create ada@example.com > /dev/null 2>&1 || :
mkdir -p ~/Maildir/cur ~/Maildir/new ~/Maildir/tmp
fanfare subscription put storms-inbox - <<< '{"topic":"storms","channel":"inbox","to":"ada@example.com"}' > /dev/null
EVENT=$(fanfare publish storms story.json --json | grep -o 'evt-[0-9]*-[0-9a-f]*' | head -1)
until ./bin/fanfare trace $EVENT 2> /dev/null | grep -q held; do sleep 0.05; done
fanfare key create --service news --scope read --name another > /dev/null
KEYID=$(fanfare key list --json | grep -o "key-[0-9]*" | tail -1)
./bin/fanfare subscriber put ada-3 - <<< '{"addresses":[{"kind":"mail","address":"ada3@example.com"}]}' > /dev/null 2>&1 || :
