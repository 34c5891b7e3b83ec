package dkim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
)

// cpu returns the CPU time of the process in nanoseconds. Unlike the elapsed time, it does not
// depend on other processes.
func cpu() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkSign signs a mail of one kilobyte and one with an attachment of one megabyte, and for
// comparison only hashes them, and signs them with go-msgauth.
func BenchmarkSign(b *testing.B) {
	mail, err := os.ReadFile(filepath.Join("..", "..", "render", "testdata", "golden", "multipart.eml"))
	if err != nil {
		b.Fatal(err)
	}
	small := string(mail) + strings.Repeat("It was felt by many who live in the region, and told at once.\r\n", 8)
	large := small + strings.Repeat(strings.Repeat("QUJD", 19)+"\r\n", 1<<20/78)
	nobody := *keyOf(b, Ed25519)
	nobody.Private = &Private{algorithm: Ed25519, size: 64, sign: func(*[32]byte) ([]byte, error) { return make([]byte, 64), nil }}
	for _, of := range []struct {
		name, message string
		key           *Key
	}{{"ed25519", small, keyOf(b, Ed25519)}, {"rsa", small, keyOf(b, RSA)}, {"hashing", small, &nobody}, {"hashing a megabyte", large, &nobody}} {
		b.Run(of.name, func(b *testing.B) {
			b.SetBytes(int64(len(of.message)))
			b.ReportAllocs()
			var s Signing
			s.Begin([]*Key{of.key}, when)
			var out []byte
			before := cpu()
			for b.Loop() {
				out = s.Sign(append(out[:0], of.message...), 0, nil)
				if err := s.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpu()-before)/float64(b.N), "cpu-ns/op")
		})
	}
	b.Run("go-msgauth, ed25519", func(b *testing.B) {
		options := &dkim.SignOptions{Domain: "example.org", Selector: "s", HeaderKeys: signedFields[:],
			HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed}
		options.Signer = signerOf(b, Ed25519)
		b.ReportAllocs()
		var out bytes.Buffer
		before := cpu()
		for b.Loop() {
			out.Reset()
			if err := dkim.Sign(&out, strings.NewReader(small), options); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((cpu()-before)/float64(b.N), "cpu-ns/op")
	})
}
