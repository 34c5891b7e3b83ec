//go:build peers

package imaporacle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A searchKey is a key of SEARCH: one with its arguments, or one that combines others.
type searchKey struct {
	combines string // "" (one key), "NOT", "OR" or "AND"
	text     string
	of       []*searchKey
}

// arguments are the numbers of arguments of search keys that have some.
var arguments = map[string]int{"BCC": 1, "CC": 1, "FROM": 1, "SUBJECT": 1, "TO": 1, "BODY": 1, "TEXT": 1, "HEADER": 2, "BEFORE": 1, "ON": 1, "SINCE": 1, "SENTBEFORE": 1,
	"SENTON": 1, "SENTSINCE": 1, "LARGER": 1, "SMALLER": 1, "KEYWORD": 1, "UNKEYWORD": 1, "UID": 1, "MODSEQ": 1}

// searchParser reads the keys of a valid command. It shares no code with the server.
type searchParser struct{ rest string }

// word reads an atom, a quoted string or a literal.
func (p *searchParser) word() (string, error) {
	p.rest = strings.TrimPrefix(p.rest, " ")
	end := strings.IndexAny(p.rest, " ()")
	switch {
	case strings.HasPrefix(p.rest, `"`):
		closing := strings.IndexByte(p.rest[1:], '"')
		if closing < 0 {
			return "", fmt.Errorf("no end of the string in %q", p.rest)
		}
		end = closing + 2
	case strings.HasPrefix(p.rest, "{"):
		length, text, _ := strings.Cut(p.rest[1:], "+}\r\n")
		n, err := strconv.Atoi(length)
		if err != nil || n > len(text) {
			return "", fmt.Errorf("not a literal: %q", p.rest)
		}
		end = len(p.rest) - len(text) + n
	case end < 0:
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word, nil
}

// keys reads keys up to a closing parenthesis or the end.
func (p *searchParser) keys() (*searchKey, error) {
	all := &searchKey{combines: "AND"}
	for p.rest = strings.TrimPrefix(p.rest, " "); p.rest != "" && p.rest[0] != ')'; p.rest = strings.TrimPrefix(p.rest, " ") {
		one, err := p.key()
		if err != nil {
			return nil, err
		}
		all.of = append(all.of, one)
	}
	return all, nil
}

func (p *searchParser) key() (*searchKey, error) {
	p.rest = strings.TrimPrefix(p.rest, " ")
	if inner, is := strings.CutPrefix(p.rest, "("); is {
		p.rest = inner
		all, err := p.keys()
		p.rest = strings.TrimPrefix(p.rest, ")")
		return all, err
	}
	name, err := p.word()
	if err != nil || name == "" {
		return nil, fmt.Errorf("no key in %q: %w", p.rest, err)
	}
	if n := map[string]int{"NOT": 1, "OR": 2}[name]; n > 0 {
		k := &searchKey{combines: name}
		for range n {
			one, err := p.key()
			if err != nil {
				return nil, err
			}
			k.of = append(k.of, one)
		}
		return k, nil
	}
	k := &searchKey{text: name}
	for range arguments[name] {
		argument, err := p.word()
		if err != nil {
			return nil, err
		}
		k.text += " " + argument
	}
	return k, nil
}

// parseSearch reads a SEARCH command: what precedes its keys in a command that only asks for numbers, and the keys.
func parseSearch(text string) (command string, keys *searchKey, err error) {
	command = "SEARCH "
	if rest, is := strings.CutPrefix(text, "UID "); is {
		command, text = "UID SEARCH ", rest
	}
	text = strings.TrimPrefix(text, "SEARCH ")
	if strings.HasPrefix(text, "RETURN (") {
		_, text, _ = strings.Cut(text, ") ")
	}
	if rest, is := strings.CutPrefix(text, "CHARSET "); is {
		charset, keys, _ := strings.Cut(rest, " ")
		command, text = command+"CHARSET "+charset+" ", keys
	}
	p := &searchParser{rest: text}
	keys, err = p.keys()
	return command, keys, err
}

// found returns the numbers that a server finds for combined keys, if it is asked for each key alone. universe has the numbers of all messages.
func (k *searchKey) found(ask func(key string) ([]int, error), universe []int) ([]int, error) {
	if k.combines == "" {
		return ask(k.text)
	}
	sets := make([][]int, len(k.of))
	for i, one := range k.of {
		var err error
		if sets[i], err = one.found(ask, universe); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(universe), func(n int) bool {
		in := func(set []int) bool { return slices.Contains(set, n) }
		switch k.combines {
		case "NOT":
			return in(sets[0])
		case "OR":
			return !slices.ContainsFunc(sets, in)
		}
		return slices.ContainsFunc(sets, func(set []int) bool { return !in(set) })
	}), nil
}

// combine asks Dovecot for each key of a SEARCH command alone, and returns the fields of the result if these answers are combined as RFC 3501,
// section 6.4.4, says.
func (c *comparison) combine(cmd *command) (fields, error) {
	v := c.views[0][cmd.on]
	command, keys, err := parseSearch(v.withMarks(strings.Join(cmd.parts, "")))
	if err != nil {
		return nil, err
	}
	ask := func(key string) ([]int, error) {
		all, err := c.ask(0, cmd.on, command+key)
		if err != nil {
			return nil, err
		}
		var numbers []int
		for _, r := range all {
			if r.name != "SEARCH" {
				continue
			}
			for _, value := range r.values {
				if n, err := strconv.Atoi(plain(value)); err == nil { // not the list with the ModSeq
					numbers = append(numbers, n)
				}
			}
		}
		slices.Sort(numbers)
		return numbers, nil
	}
	universe, err := ask("ALL")
	if err != nil {
		return nil, err
	}
	numbers, err := keys.found(ask, universe)
	if err != nil {
		return nil, err
	}
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	f := fields{"SEARCH": strings.Join(words, " "), "ESEARCH ALL": strings.Join(words, " "), "ESEARCH COUNT": strconv.Itoa(len(numbers))}
	if len(numbers) > 0 {
		f["ESEARCH MIN"], f["ESEARCH MAX"] = words[0], words[len(words)-1]
	}
	return f, nil
}

// isSearchResult reports whether a field is a result of SEARCH.
func isSearchResult(key string) bool {
	return slices.Contains([]string{"SEARCH", "ESEARCH ALL", "ESEARCH COUNT", "ESEARCH MIN", "ESEARCH MAX"}, key)
}
