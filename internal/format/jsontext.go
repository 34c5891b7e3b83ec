package format

import "unicode/utf8"

// find returns the JSON text at path, following objects only. It reports false
// where the value is not there, or where finding it needs a real decoder: escaped
// or repeated names, lists on the way, strings with escapes. raw is valid JSON;
// if it is not, find reports false or an arbitrary piece of it.
func find(raw []byte, path []string) ([]byte, bool) {
	i := skipSpace(raw, 0)
	for _, name := range path {
		if i >= len(raw) || raw[i] != '{' {
			return nil, false
		}
		at := -1
		for i = skipSpace(raw, i+1); i < len(raw) && raw[i] != '}'; {
			end, plainKey := skipString(raw, i)
			if end < 0 || !plainKey {
				return nil, false
			}
			match := string(raw[i+1:end-1]) == name
			i = skipSpace(raw, end)
			if i >= len(raw) || raw[i] != ':' {
				return nil, false
			}
			i = skipSpace(raw, i+1)
			if match {
				if at >= 0 {
					return nil, false
				}
				at = i
			}
			if i = skipValue(raw, i); i < 0 {
				return nil, false
			}
			if i = skipSpace(raw, i); i < len(raw) && raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
		if at < 0 {
			return nil, false
		}
		i = at
	}
	end := skipValue(raw, i)
	if end < 0 || raw[i] == '{' || raw[i] == '[' {
		return nil, false
	}
	if raw[i] == '"' {
		if _, plainString := skipString(raw, i); !plainString {
			return nil, false
		}
	}
	return raw[i:end], true
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i, or -1, and
// whether its text is its bytes.
func skipString(b []byte, i int) (end int, plain bool) {
	if i >= len(b) || b[i] != '"' {
		return -1, false
	}
	plain = true
	ascii := true
	start := i + 1
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, plain && (ascii || utf8.Valid(b[start:i]))
		case c == '\\':
			plain = false
			i++
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return -1, false
}

// skipValue returns the index behind the value that begins at i, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	if b[i] == '"' {
		end, _ := skipString(b, i)
		return end
	}
	depth, start := 0, i
	for i < len(b) {
		switch b[i] {
		case '"':
			end, _ := skipString(b, i)
			if end < 0 {
				return -1
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return end(i, start)
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return end(i, start)
			}
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	return end(i, start)
}

func end(i, start int) int {
	if i == start {
		return -1
	}
	return i
}
