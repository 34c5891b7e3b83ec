package remote

import (
	"context"
	"crypto/sha256"
	"runtime"
	"time"

	"fanfare.dev/fanfare/internal/cluster/link"
)

// An RSA signature takes a node about a millisecond of CPU time, as long as tens of messages. The leader therefore also
// lets nodes that deliver sign: it sends them digests, and gets signatures.

const (
	// signaturesPerNode is how many signatures a node makes or has waiting at a time.
	signaturesPerNode = 16
	// signPatience is how long the leader waits for a signature.
	signPatience = 2 * time.Second
	// lacksKeyFor is how long a node that does not have a key is not asked for its signatures again.
	lacksKeyFor = 10 * time.Second
)

// Capacity returns how many signatures other nodes can make at the same time.
func (h *Hub) Capacity() int { return signaturesPerNode * len(h.Nodes()) }

// Signed returns how many signatures nodes have made since the leader started to lead, by the name of the node.
func (h *Hub) Signed() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[string]int64, len(h.signed))
	for name, n := range h.signed {
		all[name] = n.Load()
	}
	return all
}

// Sign lets a node sign a digest with the key that has a public key. ok is false if no node can.
func (h *Hub) Sign(public []byte, digest *[sha256.Size]byte) (signature []byte, ok bool) {
	var free *Node
	least := signaturesPerNode
	for _, n := range h.Nodes() {
		if waiting, can := n.signs(public); can && waiting < least {
			free, least = n, waiting
		}
	}
	if free == nil {
		return nil, false
	}
	return free.sign(public, digest)
}

// signs returns how many signatures the node is about to make, and whether it may have a key.
func (n *Node) signs(public []byte) (waiting int, can bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.signing.Waiting(), n.lost.IsZero() && !time.Now().Before(n.lacks[string(public)])
}

func (n *Node) sign(public []byte, digest *[sha256.Size]byte) (signature []byte, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), signPatience)
	defer cancel()
	signature, err := n.signing.Ask(ctx, n.link, kindSign, digest[:], public)
	if err != nil {
		return nil, false
	}
	if len(signature) == 0 {
		n.mu.Lock()
		n.lacks[string(public)] = time.Now().Add(lacksKeyFor)
		n.mu.Unlock()
	}
	n.made.Add(min(1, int64(len(signature))))
	return signature, len(signature) > 0
}

// sign signs a digest for the leader.
func (s *session) sign(f link.Frame) error {
	if len(f.Payload) < sha256.Size {
		return link.ErrPayload
	}
	s.running.Go(func() {
		s.signers <- struct{}{}
		defer func() { <-s.signers }()
		var signature []byte
		if s.agent.options.Sign != nil {
			signature = s.agent.options.Sign(f.Payload[sha256.Size:], (*[sha256.Size]byte)(f.Payload))
		}
		s.link.Send(kindSigned, f.Stream, signature)
	})
	return nil
}

func newSigners() chan struct{} { return make(chan struct{}, runtime.GOMAXPROCS(0)) }
