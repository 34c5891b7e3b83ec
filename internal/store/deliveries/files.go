package deliveries

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// Attached files are stored apart from their messages, once for all messages of a day, and
// encrypted. The key is the hash of the bytes, which only the messages have. When the last
// message of a file is erased, nobody can decrypt the file, and retention removes it with its
// day. So no references are counted, and a file whose message was never accepted is unreadable.

// filedUnder is the id of a file. It does not lead back to the sum.
func filedUnder(sum fanfare.Sum) []byte {
	id := sha256.Sum256(append([]byte("fanfare message file: "), sum[:]...))
	return id[:]
}

// crypt encrypts or decrypts in place. Each key encrypts only one text, so no nonce is needed.
func crypt(sum fanfare.Sum, content []byte) error {
	block, err := aes.NewCipher(sum[:])
	if err == nil {
		cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(content, content) //nolint:gosec // see above
	}
	return err
}

// KeepFiles stores the bytes of files for messages of a day durably, under their hashes.
func (s *Store) KeepFiles(ctx context.Context, of fanfare.Day, contents ...[]byte) error {
	ids, sealed := make([][]byte, len(contents)), make([][]byte, len(contents))
	for i, content := range contents {
		sum := fanfare.SumOf(content)
		ids[i], sealed[i] = filedUnder(sum), append([]byte{}, content...)
		if err := crypt(sum, sealed[i]); err != nil {
			return err
		}
	}
	return s.begin(ctx, of, func(in store.Session) error {
		for i := range ids {
			if err := in.Run("message_file_put", ids[i], sealed[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// File returns the bytes of a file of a message that was received on a day, or NotFound, or a DamagedError.
func (s *Store) File(ctx context.Context, of fanfare.Day, sum fanfare.Sum) ([]byte, error) {
	var content []byte
	found := false
	err := s.read(ctx, of, func(in store.Session) error {
		found = false
		return in.Each("message_file", func(r store.Row) error {
			content, found = r.Bytes(0), true
			return nil
		}, filedUnder(sum))
	})
	if err != nil {
		return nil, err
	}
	if found {
		err = crypt(sum, content)
	}
	if err == nil && found && fanfare.SumOf(content) != sum {
		return nil, checksum.Damaged("the file " + sum.String() + " of a message of the day " + of.String())
	}
	if err == nil && !found {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: "the file of the message is no longer stored"}
	}
	return content, err
}
