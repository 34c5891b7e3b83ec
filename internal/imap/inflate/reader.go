package inflate

import (
	"bufio"
	"errors"
	"io"
)

// ErrCorrupt says that the input is not valid.
var ErrCorrupt = errors.New("the compressed data are not valid")

const (
	windowBytes = 32 << 10
	maxPending  = windowBytes / 2 // output that is not read yet
	inputBytes  = 1 << 10
	maxBits     = 15
	endOfBlock  = 256
)

// A Reader decompresses a stream. It ends with io.EOF after the final block.
type Reader struct {
	from *bufio.Reader
	bits uint32 // that have been read and not used, the next one lowest
	n    uint   // number of them

	window [windowBytes]byte
	at     int   // where the next byte goes
	unread int   // bytes before at that were not returned
	total  int64 // bytes of output; distances are checked against it

	inBlock bool
	final   bool
	stored  int // bytes that remain of a stored block
	coded   bool
	copying int // bytes that remain of a copy
	back    int // its distance

	lengths   code
	distances code
	err       error
}

// NewReader returns a reader.
func NewReader(from io.Reader) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, inputBytes)}
}

// Read returns decompressed bytes as soon as there are any.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.unread == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.step()
	}
	start := r.at - r.unread
	if start < 0 {
		start += windowBytes
	}
	n := copy(p, r.window[start:min(start+r.unread, windowBytes)])
	r.unread -= n
	return n, nil
}

// step decodes to the end of a block, or until there is enough output.
func (r *Reader) step() error {
	if !r.inBlock {
		if r.final {
			return io.EOF
		}
		if err := r.begin(); err != nil {
			return err
		}
	}
	if r.coded {
		return r.decode()
	}
	for ; r.stored > 0 && r.unread < maxPending; r.stored-- {
		c, err := r.from.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		r.put(c)
	}
	r.inBlock = r.stored > 0
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) put(c byte) {
	r.window[r.at] = c
	r.at = (r.at + 1) % windowBytes
	r.unread++
	r.total++
}

// take returns the next bits.
func (r *Reader) take(n uint) (uint32, error) {
	for r.n < n {
		c, err := r.from.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		r.bits |= uint32(c) << r.n
		r.n += 8
	}
	v := r.bits & (1<<n - 1)
	r.bits >>= n
	r.n -= n
	return v, nil
}

// begin reads the header of a block.
func (r *Reader) begin() error {
	header, err := r.take(3)
	if err != nil {
		return err
	}
	r.inBlock, r.final, r.coded = true, header&1 != 0, true
	switch header >> 1 {
	case 0:
		return r.beginStored()
	case 1:
		r.lengths, r.distances = fixedLengths, fixedDistances
		return nil
	case 2:
		return r.readCodes()
	}
	return ErrCorrupt
}

func (r *Reader) beginStored() error {
	r.bits, r.n, r.coded = 0, 0, false // the rest of the byte; take never reads more than one in advance
	var head [4]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return unexpected(err)
	}
	size := int(head[0]) | int(head[1])<<8
	if size != int(^head[2])|int(^head[3])<<8 {
		return ErrCorrupt
	}
	r.stored = size
	return nil
}

// Tables of RFC 1951, section 3.2.5.
var (
	lengthBase   = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra  = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distanceBase = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distanceBits = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
	codeOrder    = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

// decode decodes symbols.
func (r *Reader) decode() error {
	for {
		for ; r.copying > 0; r.copying-- {
			if r.unread >= maxPending {
				return nil
			}
			from := r.at - r.back
			if from < 0 {
				from += windowBytes
			}
			r.put(r.window[from])
		}
		if r.unread >= maxPending {
			return nil
		}
		symbol, err := r.symbol(&r.lengths)
		switch {
		case err != nil:
			return err
		case symbol < endOfBlock:
			r.put(byte(symbol))
			continue
		case symbol == endOfBlock:
			r.inBlock = false
			return nil
		case symbol-257 >= len(lengthBase):
			return ErrCorrupt
		}
		extra, err := r.take(uint(lengthExtra[symbol-257]))
		if err != nil {
			return err
		}
		length := int(lengthBase[symbol-257]) + int(extra)
		if symbol, err = r.symbol(&r.distances); err != nil {
			return err
		}
		if symbol >= len(distanceBase) {
			return ErrCorrupt
		}
		if extra, err = r.take(uint(distanceBits[symbol])); err != nil {
			return err
		}
		r.back = int(distanceBase[symbol]) + int(extra)
		if int64(r.back) > r.total {
			return ErrCorrupt
		}
		r.copying = length
	}
}

// code is a canonical Huffman code: the number of symbols of each length, and the symbols in the order of their codes.
type code struct {
	count   [maxBits + 1]uint16
	symbols [288]uint16
}

// set computes the code of the lengths of symbols. A code may have unused values only if it has a single symbol of one bit, or none.
func (c *code) set(lengths []uint8) error {
	c.count = [maxBits + 1]uint16{}
	for _, n := range lengths {
		c.count[n]++
	}
	left, used := 1, len(lengths)-int(c.count[0])
	for n := 1; n <= maxBits; n++ {
		left = left<<1 - int(c.count[n])
		if left < 0 {
			return ErrCorrupt
		}
	}
	if left > 0 && used > 0 && (used != 1 || c.count[1] != 1) {
		return ErrCorrupt
	}
	var next [maxBits + 2]uint16
	for n := 1; n <= maxBits; n++ {
		next[n+1] = next[n] + c.count[n]
	}
	for symbol, n := range lengths {
		if n != 0 {
			c.symbols[next[n]] = uint16(symbol)
			next[n]++
		}
	}
	return nil
}

// symbol reads the next symbol, one bit after the other, so that no bit behind it is needed.
func (r *Reader) symbol(c *code) (int, error) {
	value, first, index := 0, 0, 0
	for n := 1; n <= maxBits; n++ {
		bit, err := r.take(1)
		if err != nil {
			return 0, err
		}
		value |= int(bit)
		count := int(c.count[n])
		if value-count < first {
			return int(c.symbols[index+value-first]), nil
		}
		index += count
		first = (first + count) << 1
		value <<= 1
	}
	return 0, ErrCorrupt
}

var fixedLengths, fixedDistances = fixedCodes()

// fixedCodes returns the codes of RFC 1951, section 3.2.6.
func fixedCodes() (lengths, distances code) {
	var bits [288]uint8
	for i := range bits {
		switch {
		case i < 144:
			bits[i] = 8
		case i < 256:
			bits[i] = 9
		case i < 280:
			bits[i] = 7
		default:
			bits[i] = 8
		}
	}
	_ = lengths.set(bits[:]) // complete
	var five [32]uint8
	for i := range five {
		five[i] = 5
	}
	_ = distances.set(five[:]) // complete; the last two symbols are not valid
	return lengths, distances
}

// readCodes reads the codes of a block (RFC 1951, section 3.2.7).
func (r *Reader) readCodes() error {
	head, err := r.take(14)
	if err != nil {
		return err
	}
	literals, distances, lengths := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if literals > 286 || distances > 30 {
		return ErrCorrupt
	}
	var bits [286 + 30]uint8
	var codeBits [19]uint8
	for i := range lengths {
		n, err := r.take(3)
		if err != nil {
			return err
		}
		codeBits[codeOrder[i]] = uint8(n)
	}
	var lengthCode code
	if err := lengthCode.set(codeBits[:]); err != nil {
		return err
	}
	previous := -1
	for i := 0; i < literals+distances; {
		symbol, err := r.symbol(&lengthCode)
		if err != nil {
			return err
		}
		if symbol < 16 {
			previous = symbol
			bits[i] = uint8(symbol)
			i++
			continue
		}
		repeat, extra := 3, uint(2)
		switch symbol {
		case 16:
			if previous < 0 {
				return ErrCorrupt
			}
		case 17:
			previous, extra = 0, 3
		case 18:
			previous, repeat, extra = 0, 11, 7
		}
		more, err := r.take(extra)
		if err != nil {
			return err
		}
		if repeat += int(more); i+repeat > literals+distances {
			return ErrCorrupt
		}
		for range repeat {
			bits[i] = uint8(previous)
			i++
		}
	}
	if bits[endOfBlock] == 0 {
		return ErrCorrupt
	}
	if err := r.lengths.set(bits[:literals]); err != nil {
		return err
	}
	return r.distances.set(bits[literals : literals+distances])
}
