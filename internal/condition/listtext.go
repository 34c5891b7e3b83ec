package condition

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

// textOfList is the listText of these values.
func textOfList(values []string) string {
	text, _ := json.Marshal(values) // strings always are JSON
	return listMark + string(text)
}

// readListText returns the list that a text stands for, if it does.
func readListText(text string) (list []any, ok bool) {
	if len(text) == 0 || text[:1] != listMark {
		return nil, false
	}
	if err := json.Unmarshal([]byte(text[1:]), &list); err != nil {
		panic("match: the text of a list is not one: " + err.Error()) // listText made it
	}
	return list, true
}
