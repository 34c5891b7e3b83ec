package push

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
)

// Keys are the keys of a client for encrypted messages (RFC 8291).
type Keys struct {
	P256DH string `json:"p256dh"` // public key, uncompressed, in base64url
	Auth   string `json:"auth"`   // secret of 16 bytes in base64url
}

// recordSize is the size of the only record of a message. A push service accepts 4096 bytes (RFC 8030, section 7.2).
const recordSize = 4096

// overhead of a message: salt, record size, length and public key, delimiter and authentication tag.
const overhead = 16 + 4 + 1 + 65 + 1 + 16

func (k *Keys) parse() (public *ecdh.PublicKey, auth []byte, err error) {
	point, err := decode(k.P256DH)
	if err == nil {
		public, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("p256dh is not a public key on the curve P-256 in base64url: %w", err)
	}
	if auth, err = decode(k.Auth); err != nil || len(auth) != 16 {
		return nil, nil, fmt.Errorf("auth is not a secret of 16 bytes in base64url")
	}
	return public, auth, nil
}

// decode reads base64url with or without padding.
func decode(text string) ([]byte, error) {
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	return base64.RawURLEncoding.DecodeString(text)
}

// encrypt encrypts a message in the content encoding aes128gcm (RFC 8188) for a client.
func (k *Keys) encrypt(text []byte) ([]byte, error) {
	if len(text)+overhead > recordSize {
		return nil, fmt.Errorf("the message has %d bytes; at most %d can be pushed", len(text), recordSize-overhead)
	}
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	return k.seal(text, own, salt)
}

// seal encrypts with a key and a salt of the caller.
func (k *Keys) seal(text []byte, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	client, auth, err := k.parse()
	if err != nil {
		return nil, err
	}
	shared, err := own.ECDH(client)
	if err != nil {
		return nil, err
	}
	info := slices.Concat([]byte("WebPush: info\x00"), client.Bytes(), own.PublicKey().Bytes())
	material, err := hkdf.Key(sha256.New, shared, auth, string(info), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, material, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, material, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	public := own.PublicKey().Bytes()
	out := append([]byte{}, salt...)
	out = binary.BigEndian.AppendUint32(out, recordSize)
	out = append(append(out, byte(len(public))), public...)
	return gcm.Seal(out, nonce, append(slices.Clone(text), 2), nil), nil // 2 marks the last record
}
