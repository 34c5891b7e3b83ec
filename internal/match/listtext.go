package match

import "encoding/json"

// listMark begins the text that stands for a list. No other text begins so: what
// JSON gives is valid UTF-8.
const listMark = "\xff"

// listText turns a JSON array of strings into the text under which the list is
// kept, so that an equal list is kept and evaluated once. The order counts, as
// it does in CEL. It is not ok for anything else.
func listText(raw json.RawMessage) (string, bool) {
	var given []*string // a null would be an empty string otherwise
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &given) != nil {
		return "", false
	}
	for _, one := range given {
		if one == nil {
			return "", false
		}
	}
	text, err := json.Marshal(given)
	return listMark + string(text), err == nil
}

// intern makes a text ready for conditions.
func intern(text string) internedText {
	if len(text) == 0 || text[:1] != listMark {
		return internedText{text: text, folded: fold(text)}
	}
	one := internedText{text: text}
	if err := json.Unmarshal([]byte(text[1:]), &one.list); err != nil {
		panic("match: the text of a list is not one: " + err.Error()) // listText made it
	}
	return one
}
