package lang

import (
	"strings"
	"testing"
)

func TestEachCapitalOfASCIIFolds(t *testing.T) {
	for c := 'A'; c <= 'Z'; c++ {
		if got, want := Fold(string(c)), strings.ToLower(string(c)); got != want {
			t.Errorf("%c folds to %q, want %q", c, got, want)
		}
	}
}

func TestABacktickWithoutAnEndIsNoName(t *testing.T) {
	for _, text := range []string{"`", "`abc", "`a b"} {
		if n := backticksEnd(text); n != 0 {
			t.Errorf("%s ends at %d", text, n)
		}
	}
}
