package serverkeys

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func newVault(t *testing.T, dir string) *Vault {
	t.Helper()
	keys, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Save(); err != nil {
		t.Fatal(err)
	}
	return NewVault(keys.Sealing)
}

func TestSealedSecretOpensForItsPurposeOnly(t *testing.T) {
	v := newVault(t, t.TempDir())
	sealed, err := v.Seal([]byte("a secret"), "service one")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("secret")) {
		t.Error("the secret is readable")
	}
	if secret, err := v.Open(sealed, "service one"); err != nil || string(secret) != "a secret" {
		t.Errorf("got %q, %v", secret, err)
	}
	for _, wrong := range [][]byte{nil, sealed[:5], append(bytes.Clone(sealed), 0), append([]byte{sealed[0] ^ 1}, sealed[1:]...)} {
		if secret, err := v.Open(wrong, "service one"); err == nil {
			t.Errorf("%x opens as %q", wrong, secret)
		}
	}
	if _, err := v.Open(sealed, "service two"); err == nil {
		t.Error("the secret opens for another purpose")
	}
	if _, err := newVault(t, t.TempDir()).Open(sealed, "service one"); err == nil {
		t.Error("the secret opens with another key")
	}
}

func TestRotationRemovesThePreviousKey(t *testing.T) {
	dir := t.TempDir()
	v := newVault(t, dir)
	old, err := v.Seal([]byte("a secret"), "p")
	if err != nil {
		t.Fatal(err)
	}
	var renewed []byte
	failed := errors.New("the store is away")
	if err := v.Rotate(context.Background(), func() error { return failed }); !errors.Is(err, failed) {
		t.Fatalf("got %v", err)
	}
	v = newVault(t, dir) // after a crash
	if _, err := v.Open(old, "p"); err != nil {
		t.Fatalf("after an interrupted rotation: %v", err)
	}
	err = v.Rotate(context.Background(), func() (err error) {
		secret, err := v.Open(old, "p")
		if err == nil {
			renewed, err = v.Seal(secret, "p")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v = newVault(t, dir)
	if secret, err := v.Open(renewed, "p"); err != nil || string(secret) != "a secret" {
		t.Errorf("got %q, %v", secret, err)
	}
	if _, err := v.Open(old, "p"); err == nil {
		t.Error("the previous key still opens secrets")
	}
	if content, err := os.ReadFile(filepath.Join(dir, sealingFile)); err != nil || len(content) != sealingBytes {
		t.Errorf("the file has %d bytes, %v", len(content), err)
	}
}
