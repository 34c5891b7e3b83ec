package app_test

import (
	"testing"

	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/returns"
)

func TestTheFormsOfReceiptsAreThoseThatCanBeRead(t *testing.T) {
	forms := returns.ReceiptForms()
	for i, f := range forms {
		if len(forms) != len(registry.ReceiptForms) || f.Name != registry.ReceiptForms[i] {
			t.Fatalf("%v, and %s can be read", registry.ReceiptForms, f.Name)
		}
	}
}
