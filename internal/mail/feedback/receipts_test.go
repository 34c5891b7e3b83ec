package feedback_test

import (
	"testing"

	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/registry"
)

func TestReceiptFormsMatchTheReaders(t *testing.T) {
	forms := bounce.ReceiptForms()
	for i, f := range forms {
		if len(forms) != len(registry.ReceiptForms) || f.Name != registry.ReceiptForms[i] {
			t.Fatalf("%v, and %s can be read", registry.ReceiptForms, f.Name)
		}
	}
}
