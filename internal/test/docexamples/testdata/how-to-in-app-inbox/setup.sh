fanfare subscription put ada-roadworks - <<< '{"topic":"roadworks","channel":"inbox","to":"ada@example.com"}' > /dev/null
EVENT=$(echo '{"title":"Road closed","text":"Today"}' | fanfare publish roadworks - --wait --json | grep -o 'evt-[0-9]*-[0-9a-f]*' | head -1)
