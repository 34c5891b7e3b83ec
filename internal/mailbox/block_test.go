package mailbox

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// randomBlock returns members in ascending order of their accounts, with positions in any order.
func randomBlock(random *rand.Rand) []blockMember {
	members := make([]blockMember, random.IntN(200))
	account := AccountID(0)
	for i := range members {
		account += AccountID(1 + random.IntN(1000))
		members[i] = blockMember{account: account, position: random.Uint32(), delta: make([]byte, random.IntN(300))}
		for j := range members[i].delta {
			members[i].delta[j] = byte(random.IntN(4))
		}
	}
	return members
}

func TestEachMemberOfABlockIsFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var buffer []byte
	for range 100 {
		members := randomBlock(random)
		data := encodeBlock(members)
		accounts := map[AccountID]bool{}
		for _, want := range members {
			accounts[want.account] = true
			m, found, block, err := findMember(buffer, data, want.account)
			buffer = block
			if err != nil || !found || m.account != want.account || m.position != want.position || !bytes.Equal(m.delta, want.delta) {
				t.Fatalf("account %d: %+v, %t, %v, want %+v", want.account, m, found, err, want)
			}
		}
		for range 50 {
			id := AccountID(random.IntN(200_000))
			_, found, block, err := findMember(buffer, data, id)
			buffer = block
			if err != nil || found != accounts[id] {
				t.Fatalf("account %d: found %t, %v", id, found, err)
			}
		}
	}
}

func TestADamagedBlockIsRefusedOrReadWithoutAPanic(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 3000 {
		members := randomBlock(random)
		data := encodeBlock(members)
		for range 1 + random.IntN(3) {
			data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
		}
		data = data[:1+random.IntN(len(data))]
		if _, _, _, err := findMember(nil, data, AccountID(random.IntN(100_000))); err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no damaged block is refused")
	}
}
