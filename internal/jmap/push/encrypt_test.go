package push

import (
	"bytes"
	"crypto/ecdh"
	"encoding/base64"
	"strings"
	"testing"
)

func TestRFC8291Section5TheExampleIsEncrypted(t *testing.T) {
	raw := func(text string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	keys := &Keys{P256DH: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", Auth: "BTBZMqHH6r4Tts7J_aSIgg=="}
	own, err := ecdh.P256().NewPrivateKey(raw("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := keys.seal([]byte("When I grow up, I want to be a watermelon"), own, raw("DGv6ra1nlYgDCS1FRnbzlw"))
	want := raw("DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %s, %v", base64.RawURLEncoding.EncodeToString(got), err)
	}
	if out, err := keys.encrypt([]byte(strings.Repeat("x", recordSize-overhead))); err != nil || len(out) != recordSize {
		t.Errorf("the longest message has %d bytes, %v", len(out), err)
	}
	if _, err := keys.encrypt([]byte(strings.Repeat("x", recordSize))); err == nil {
		t.Error("a message that no push service accepts is encrypted")
	}
}
