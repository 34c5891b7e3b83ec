package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth limits the nesting of JSON that clients send.
const maxDepth = 64

// checkIJSON checks that text is I-JSON (RFC 7493): UTF-8 without lone surrogates, and no object with the same name twice.
func checkIJSON(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("the text is not valid UTF-8")
	}
	if !json.Valid(text) {
		var value json.RawMessage
		err := json.Unmarshal(text, &value)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fmt.Errorf("the text is not JSON: %s at byte %d", syntax.Error(), syntax.Offset)
		}
		return errors.New("the text is not JSON")
	}
	s := scanner{text: text}
	return s.value(0)
}

// A scanner walks through valid JSON.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r' || s.text[s.at] == '\n') {
		s.at++
	}
}

// value walks through a value at a depth.
func (s *scanner) value(depth int) error {
	if depth > maxDepth {
		return errors.New("the values are nested deeper than " + strconv.Itoa(maxDepth) + " levels")
	}
	s.space()
	switch s.text[s.at] {
	case '{':
		return s.members(depth)
	case '[':
		return s.elements(depth)
	case '"':
		_, err := s.str()
		return err
	}
	for s.at < len(s.text) && s.text[s.at] != ',' && s.text[s.at] != ']' && s.text[s.at] != '}' && s.text[s.at] > ' ' {
		s.at++
	}
	return nil
}

func (s *scanner) members(depth int) error {
	s.at++ // {
	names := map[string]bool{}
	for {
		s.space()
		switch s.text[s.at] {
		case '}':
			s.at++
			return nil
		case ',':
			s.at++
			continue
		}
		name, err := s.str()
		if err != nil {
			return err
		}
		if names[name] {
			return fmt.Errorf("the name %.80q occurs twice in an object", name)
		}
		names[name] = true
		s.space()
		s.at++ // :
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
}

func (s *scanner) elements(depth int) error {
	s.at++ // [
	for {
		s.space()
		switch s.text[s.at] {
		case ']':
			s.at++
			return nil
		case ',':
			s.at++
			continue
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
}

// str walks through a string and returns its value.
func (s *scanner) str() (string, error) {
	begin, escaped := s.at, false
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] != '\\' {
			continue
		}
		escaped = true
		s.at++
		if s.text[s.at] != 'u' {
			continue
		}
		r := s.hex(s.at + 1)
		s.at += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		if s.text[s.at+1] != '\\' || s.text[s.at+2] != 'u' || utf16.DecodeRune(r, s.hex(s.at+3)) == utf8.RuneError {
			return "", errors.New("a string has half of a surrogate pair")
		}
		s.at += 6
	}
	s.at++
	if !escaped {
		return string(s.text[begin+1 : s.at-1]), nil
	}
	var value string
	err := json.Unmarshal(s.text[begin:s.at], &value)
	return value, err
}

// hex returns the number in four hexadecimal digits, or 0 if there are none.
func (s *scanner) hex(at int) rune {
	if at+4 > len(s.text) {
		return 0
	}
	n, err := strconv.ParseUint(string(s.text[at:at+4]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}
