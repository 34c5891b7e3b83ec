package dkim

import "crypto/sha256"

// Elsewhere makes slow signatures on other nodes of a cluster, which have the same keys.
type Elsewhere interface {
	// Capacity returns how many signatures other nodes can make at the same time.
	Capacity() int
	// Sign signs a digest with the key that has a public key, as in p= of its DNS record. ok is false if no node can.
	Sign(public []byte, digest *[sha256.Size]byte) (signature []byte, ok bool)
}

// signature signs a digest: on another node if there is one with capacity, and else here. It checks the signature of another
// node, which takes a fortieth of the time.
func (p *Private) signature(digest *[sha256.Size]byte, elsewhere Elsewhere) ([]byte, error) {
	if elsewhere != nil && p.verify != nil {
		if signature, ok := elsewhere.Sign(p.public, digest); ok && p.verify(digest, signature) {
			return signature, nil
		}
	}
	return p.sign(digest)
}

// SignDigest signs a digest for another node. public must be the public key of p.
func (p *Private) SignDigest(digest *[sha256.Size]byte) ([]byte, error) { return p.sign(digest) }

// Public returns the public key, as in p= of the DNS record.
func (p *Private) Public() []byte { return p.public }

// Slow reports whether a signature takes so long that another node may make it.
func (p *Private) Slow() bool { return p.verify != nil }
