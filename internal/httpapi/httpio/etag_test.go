package httpio

import (
	"net/http"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestEqualThingsHaveEqualTags(t *testing.T) {
	one, err1 := TagOf(map[string]int{"a": 1, "b": 2})
	two, err2 := TagOf(map[string]int{"b": 2, "a": 1})
	other, err3 := TagOf(map[string]int{"a": 1, "b": 3})
	if err1 != nil || err2 != nil || err3 != nil || one != two || one == other {
		t.Errorf("%s %s %s", one, two, other)
	}
	if len(one) < 10 || one[0] != '"' || one[len(one)-1] != '"' || strings.ContainsAny(one[1:len(one)-1], "\" ,") {
		t.Errorf("%s is no strong tag", one)
	}
}

func TestPreconditions(t *testing.T) {
	const tag = `"now"`
	for name, test := range map[string]struct {
		match, noneMatch []string
		tag              string
		allowed, known   bool
	}{
		"none":                            {nil, nil, tag, true, false},
		"the tag":                         {[]string{tag}, nil, tag, true, false},
		"another tag":                     {[]string{`"then"`}, nil, tag, false, false},
		"one of several":                  {[]string{`"then", "now"`}, nil, tag, true, false},
		"one of several headers":          {[]string{`"then"`, `"now"`}, nil, tag, true, false},
		"a comma inside a tag":            {[]string{`"a,b" ,"now"`}, nil, tag, true, false},
		"a tag that only begins like it":  {[]string{`"nower"`}, nil, tag, false, false},
		"a weak tag proves nothing":       {[]string{`W/"now"`}, nil, tag, false, false},
		"not a tag":                       {[]string{`now`}, nil, tag, false, false},
		"an empty header":                 {[]string{``}, nil, tag, false, false},
		"an unfinished tag":               {[]string{`"now`}, nil, tag, false, false},
		"anything":                        {[]string{`*`}, nil, tag, true, false},
		"anything where nothing is":       {[]string{`*`}, nil, "", false, false},
		"the tag where nothing is":        {[]string{tag}, nil, "", false, false},
		"only where nothing is, it is":    {nil, []string{`*`}, tag, false, true},
		"only where nothing is, it isn't": {nil, []string{`*`}, "", true, false},
		"not this one, strong":            {nil, []string{tag}, tag, false, true},
		"not this one, weak":              {nil, []string{`W/"now"`}, tag, false, true},
		"not another one":                 {nil, []string{`"then"`}, tag, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"If-Match": test.match, "If-None-Match": test.noneMatch}
			err := MayChange(h, test.tag)
			if (err == nil) != test.allowed || err != nil && fanfare.CodeOf(err) != fanfare.PreconditionFailed {
				t.Errorf("change: %v", err)
			}
			if got := IsKnown(h, test.tag); got != test.known {
				t.Errorf("known: %v", got)
			}
		})
	}
}
