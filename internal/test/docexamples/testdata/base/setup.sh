# What is there before the page begins: people, an event, and files.
for paused in "--channel news/mail" "--service news"; do FANFARE_SERVICE= ./bin/fanfare resume $paused > /dev/null 2>&1 || :; done
FANFARE_SERVICE= ./bin/fanfare resume --all > /dev/null 2>&1 || :
./bin/fanfare suppression lift ada@example.com > /dev/null 2>&1 || :
fanfare subscriber put ada - <<< '{"addresses":[{"kind":"mail","address":"ada@example.com"}],"locale":"en","attributes":{"region":"Wien"}}'
fanfare subscription put ada-alaska - <<< '{"topic":"earthquakes","channel":"mail","subscriber":"ada","rule":"near","params":{"min_mag":3,"place":"Alaska"}}'
SUBSCRIBER=ada SUBSCRIPTION=ada-alaska
EVENT=$(echo '{"id":"q1","mag":5.1,"place":"Off Alaska"}' | fanfare publish earthquakes - --id-field id --wait --json | grep -o 'evt-[0-9]*-[0-9a-f]*' | head -1)
fanfare key create --all-services --scope read --name reader > /dev/null
KEYID=$(FANFARE_SERVICE= fanfare key list --json | grep -o 'key-[0-9]*' | tail -1)
echo '{"id":"s-1","title":"Storm","url":"https://example.org/storm"}' | tee story.json > storm.json
FILE=fanfare-$(date +%F).tar; export ONE_PASSWORD=secret TWO_PASSWORD=secret
cp db.password etc/fanfare/db.password; chmod 600 etc/fanfare/db.password
