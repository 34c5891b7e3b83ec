package render

import "unicode/utf8"

// find returns the JSON text at path, following objects only. It reports false
// where the value is not there, or where finding it needs a real decoder: escaped
// or repeated names, lists on the way, strings with escapes. raw is valid JSON;
// if it is not, find reports false or an arbitrary piece of it.
func find(raw []byte, path []string) ([]byte, bool) {
	i := skipSpace(raw, 0)
	end, direct := -1, false // of the value at i
	if len(path) == 0 {
		end, direct = skipValue(raw, i)
	}
	for _, name := range path {
		if i >= len(raw) || raw[i] != '{' {
			return nil, false
		}
		at := -1
		for i = skipSpace(raw, i+1); i < len(raw) && raw[i] != '}'; {
			endKey, directKey := skipString(raw, i)
			if endKey < 0 || !directKey {
				return nil, false
			}
			match := string(raw[i+1:endKey-1]) == name
			i = skipSpace(raw, endKey)
			if i >= len(raw) || raw[i] != ':' {
				return nil, false
			}
			i = skipSpace(raw, i+1)
			endValue, directValue := skipValue(raw, i)
			if endValue < 0 || match && at >= 0 {
				return nil, false
			}
			if match {
				at, end, direct = i, endValue, directValue
			}
			if i = skipSpace(raw, endValue); i < len(raw) && raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
		if at < 0 {
			return nil, false
		}
		i = at
	}
	if end < 0 || !direct {
		return nil, false
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

// skipValue returns the index behind the value that begins at i, or -1, and whether
// it is a number, a word, or a string whose text is its bytes.
func skipValue(b []byte, i int) (end int, direct bool) {
	switch {
	case i >= len(b):
		return -1, false
	case b[i] == '"':
		return skipString(b, i)
	case b[i] == '{' || b[i] == '[':
		return skipNested(b, i), false
	}
	for end = i; end < len(b); end++ {
		switch b[end] {
		case ',', ' ', '\n', '\t', '\r', '}', ']':
			if end == i {
				return -1, false
			}
			return end, true
		}
	}
	return end, true
}

// skipNested returns the index behind the object or list that begins at i, or -1.
func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end, _ := skipString(b, i)
			if end < 0 {
				return -1
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
