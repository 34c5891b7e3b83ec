package intake

import (
	"testing"
)

func TestEventDataHaveTheirSize(t *testing.T) {
	for _, size := range []int{25, 250, 5000} {
		if got := len(textOf(size)) - 1; got != size {
			t.Errorf("%d chars, want %d", got, size)
		}
	}
}
