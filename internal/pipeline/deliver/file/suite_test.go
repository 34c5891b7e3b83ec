package file

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestTheDriverKeepsTheContract(t *testing.T) {
	delivertest.Run(t, func(t *testing.T, _ time.Duration) *delivertest.Fixture {
		folder := filepath.Join(t.TempDir(), "mails")
		return &delivertest.Fixture{
			Driver: New(folder, TempNames{"news7", "one"}), Relay: folder, HasAttachments: true, Idempotent: true,
			Message: func(n int, text string) *driver.Message {
				return &driver.Message{From: "s@example.com", To: fmt.Sprintf("r%d@example.com", n), Body: []byte("Subject: x\r\n\r\n" + text)}
			},
			SetBehaviour: func(b delivertest.Behaviour) {
				var err error
				if b == delivertest.Unreachable { // a file has the name of the folder
					err = os.WriteFile(folder, nil, 0o600)
				} else if info, found := os.Stat(folder); found == nil && !info.IsDir() {
					err = os.Remove(folder)
				}
				if err != nil {
					t.Error(err)
				}
			},
			Behaviours: []delivertest.Behaviour{delivertest.Unreachable},
			OnBody:     func(func([]byte)) {}, // a folder has no hook
			Received:   func() [][]byte { return mails(t, folder) },
		}
	})
}

// mails returns the bodies of the files in a folder, in the order of their ids.
func mails(t *testing.T, folder string) (all [][]byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.eml"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		_, after, _ := bytes.Cut(text, []byte("Delivered-To: "))
		_, body, _ := bytes.Cut(after, []byte("\r\n"))
		all = append(all, body)
	}
	return all
}
