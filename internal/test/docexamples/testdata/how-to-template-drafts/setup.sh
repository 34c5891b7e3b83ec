for what in was shook; do
	sed "s/An earthquake of/It $what/" base.json > changed.json && fanfare apply -f changed.json > /dev/null
done
sed -i 's/An earthquake of/There was/' fanfare.yaml
