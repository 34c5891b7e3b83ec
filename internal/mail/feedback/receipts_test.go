package feedback_test

import (
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

func TestReceiptFormsMatchTheReaders(t *testing.T) {
	forms := bounce.ReceiptForms()
	for i, f := range forms {
		if len(forms) != len(catalog.ReceiptForms) || f.Name != catalog.ReceiptForms[i] {
			t.Fatalf("%v, and %s can be read", catalog.ReceiptForms, f.Name)
		}
	}
}
