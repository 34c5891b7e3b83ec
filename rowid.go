package fanfare

// Partitions is the number of fixed partitions of the subscribers. It is part of the stored
// format: changing it requires a rebuild of every store.
const Partitions = 64

const (
	localBits = 26
	// MaxLocal is the highest number of a row inside its partition.
	MaxLocal = 1<<localBits - 1
)

// A RowID identifies the stored row of a subscriber or a subscription: its partition in the upper
// six bits and a number inside the partition in the lower 26. Row ids are assigned in ascending
// order and never reused, so that the same value can be the key in the store, the id in the match
// index and the member of a manifest. Sorted row ids are also sorted by partition.
//
// Subscribers and subscriptions are numbered separately. A subscription has the partition of its
// subscriber.
type RowID uint32

// NewRowID joins a partition and a number inside it.
func NewRowID(partition int, local uint32) RowID {
	return RowID(uint32(partition)<<localBits | local&MaxLocal)
}

// Partition returns the partition, 0 to Partitions-1.
func (p RowID) Partition() int { return int(p >> localBits) }

// Local returns the number inside the partition.
func (p RowID) Local() uint32 { return uint32(p) & MaxLocal }
