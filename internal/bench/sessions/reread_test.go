package sessions

import (
	"strings"
	"testing"
)

// answered adds the response to a request, as a correct server sends it.
func answered(c *rereadCheck, number, request uint64) {
	body := make([]byte, rereadSize)
	putRequest(body, request)
	c.add(number, request, body, false)
}

func TestResponsesThatAreReadAgainAreChecked(t *testing.T) {
	for want, add := range map[string]func(c *rereadCheck){
		"":                                       func(c *rereadCheck) { answered(c, 3, 1) },
		"2 responses arrived instead of 3":       func(*rereadCheck) {},
		"4 responses arrived instead of 3":       func(c *rereadCheck) { answered(c, 3, 1); c.add(4, 1, nil, false); c.bad = "" },
		"response 4 arrived, but 3 was expected": func(c *rereadCheck) { answered(c, 4, 1) },
		"request 2 has two responses":            func(c *rereadCheck) { answered(c, 3, 2) },
		"response 3 is for request 4":            func(c *rereadCheck) { answered(c, 3, 4) },
		"response 3 is for request 0":            func(c *rereadCheck) { answered(c, 3, 0) },
		"response 3 is a fault: broken":          func(c *rereadCheck) { c.add(3, 1, []byte("broken"), true) },
		"response 3 has the body 00":             func(c *rereadCheck) { c.add(3, 1, make([]byte, rereadSize), false) },
	} {
		c := newRereadCheck(3)
		answered(c, 1, 3)
		answered(c, 2, 2)
		add(c)
		got := c.result("ses-1", 0)
		if want == "" && got.Bad != "" || !strings.HasPrefix(got.Bad, want) {
			t.Errorf("got %q, want %q", got.Bad, want)
		}
	}
}

func TestTheDigestDependsOnTheOrder(t *testing.T) {
	digest := func(first, second uint64) string {
		c := newRereadCheck(2)
		answered(c, 1, first)
		answered(c, 2, second)
		return c.result("ses-1", 0).Digest
	}
	first := digest(1, 2)
	if again, other := digest(1, 2), digest(2, 1); first != again || first == other {
		t.Errorf("the digests of one order are %s and %s, that of another one is %s", first, again, other)
	}
}
