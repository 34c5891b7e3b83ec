package mime

import (
	"bytes"
	"unicode/utf8"
)

// A Chunk is text with LF line ends that all recipients share. It is analyzed, and encoded in
// both ways, once.
type Chunk struct {
	Text     []byte
	withCRLF []byte // Text with CRLF line ends
	size     lineStats
	dotLine  bool // a line end is followed by a dot

	// Quoted-printable encoding of the lines that lie entirely in the chunk. The text before
	// and behind them joins the neighbouring values.
	innerLines []byte
	encoded    bool
}

// lineStats has the properties of a text that decide about its encoding.
type lineStats struct {
	ascii   bool
	lines   int // line ends
	first   int // bytes before the first line end
	last    int // bytes after the last line end
	longest int // bytes of the longest line between them
}

func lineStatsOf(text []byte) lineStats {
	m := lineStats{ascii: true}
	start := 0
	for i, c := range text {
		if c >= utf8.RuneSelf {
			m.ascii = false
		}
		if c != '\n' {
			continue
		}
		if m.lines == 0 {
			m.first = i
		} else {
			m.longest = max(m.longest, i-start)
		}
		m.lines++
		start = i + 1
	}
	m.last = len(text) - start
	if m.lines == 0 {
		m.first = m.last
	}
	return m
}

// join returns the statistics of m's text followed by n's.
func (m lineStats) join(n lineStats) lineStats {
	sum := lineStats{ascii: m.ascii && n.ascii, lines: m.lines + n.lines, longest: max(m.longest, n.longest)}
	switch {
	case m.lines > 0 && n.lines > 0:
		sum.first, sum.last = m.first, n.last
		sum.longest = max(sum.longest, m.last+n.first)
	case m.lines > 0:
		sum.first, sum.last = m.first, m.last+n.last
	default:
		sum.first, sum.last = m.first+n.first, n.last
		if n.lines == 0 {
			sum.last = m.last + n.last
		}
	}
	return sum
}

// sevenBit reports whether the text can be sent as 7bit (RFC 2045, section 2.7).
func (m lineStats) sevenBit() bool {
	return m.ascii && m.longestLine() <= hardLine
}

// longestLine returns the length of the longest line.
func (m lineStats) longestLine() int { return max(m.first, m.last, m.longest) }

func NewChunk(text []byte) Chunk {
	return Chunk{Text: text, withCRLF: appendCRLF(nil, text), size: lineStatsOf(text), dotLine: bytes.Contains(text, lineDot)}
}

// appendCRLF appends text with each LF as CRLF.
func appendCRLF(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		dst = append(dst, '\r', '\n')
		text = text[i+1:]
	}
}

// A Body is a part of one recipient's message: chunks and, between them, the recipient's own
// values. Ends has the ends of the values in Values; there is one value less than there are
// chunks.
type Body struct {
	Chunks []Chunk
	common lineStats // of the chunks without values
	Values []byte
	Ends   []int
}

// SetShared sets the chunks.
func (b *Body) SetShared(chunks []Chunk) {
	b.Chunks, b.common = chunks, lineStats{ascii: true}
	for i := range chunks {
		b.common = b.common.join(chunks[i].size)
	}
}

func (b *Body) piece(i int) []byte {
	if i == 0 {
		return b.Values[:b.Ends[0]]
	}
	return b.Values[b.Ends[i-1]:b.Ends[i]]
}

func (b *Body) measure() lineStats {
	m := b.Chunks[0].size
	for i := range b.Ends {
		m = m.join(lineStatsOf(b.piece(i))).join(b.Chunks[i+1].size)
	}
	return m
}

// SevenBit reports whether the body can be sent as 7bit. A line is at most as long as the
// longest line of the chunks and all values together, and this bound decides most cases.
func (b *Body) SevenBit() bool {
	if bound := b.common.longestLine() + len(b.Values); bound > hardLine {
		return b.measure().sevenBit()
	}
	return b.common.ascii && isASCII(b.Values)
}

// AppendPlain appends the body unencoded and reports whether one of its lines may begin with a
// dot. The output ends with a line end; dst must end with one.
func (b *Body) AppendPlain(dst []byte) (out []byte, dots bool) {
	start := len(dst)
	dots = bytes.Contains(b.Values, lineDot) || b.Chunks[0].dotLine || beginsDotLine(dst, b.Chunks[0].withCRLF)
	dst = append(dst, b.Chunks[0].withCRLF...)
	for i := range b.Ends {
		piece, next := b.piece(i), &b.Chunks[i+1]
		dots = dots || next.dotLine || beginsDotLine(dst, piece)
		dst = appendCRLF(dst, piece)
		dots = dots || beginsDotLine(dst, next.withCRLF)
		dst = append(dst, next.withCRLF...)
	}
	if n := len(dst); n > start && dst[n-1] != '\n' {
		dst = append(dst, '\r', '\n')
	}
	return dst, dots
}

var lineDot = []byte("\n.")

// beginsDotLine reports whether text begins a line with a dot when it is appended to before.
func beginsDotLine(before, text []byte) bool {
	return len(text) > 0 && text[0] == '.' && (len(before) == 0 || before[len(before)-1] == '\n')
}

// AppendQuotedPrintable appends the body as quoted-printable (RFC 2045, section 6.7). line is
// memory to use, returned for the next call. The bytes depend on the text alone and not on its
// division into chunks and values.
func (b *Body) AppendQuotedPrintable(dst, line []byte) (body, scratch []byte) {
	line = line[:0]
	dst, line = b.Chunks[0].appendLines(dst, line)
	for i := range b.Ends {
		rest := b.piece(i)
		for {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				break
			}
			dst = appendQPLine(dst, append(line, rest[:end]...))
			line = line[:0]
			rest = rest[end+1:]
		}
		line = append(line, rest...)
		dst, line = b.Chunks[i+1].appendLines(dst, line)
	}
	if len(line) > 0 {
		dst = appendQPLine(dst, line)
	}
	return dst, line
}

// appendLines appends the lines that end in the chunk, the first of which begins with line. It
// returns the text after the last line end as the new line.
func (c *Chunk) appendLines(dst, line []byte) (body, rest []byte) {
	if c.size.lines == 0 {
		return dst, append(line, c.Text...)
	}
	last := len(c.Text) - c.size.last
	if !c.encoded {
		for text := range bytes.Lines(c.Text[c.size.first+1 : last]) {
			c.innerLines = appendQPLine(c.innerLines, text[:len(text)-1])
		}
		c.encoded = true
	}
	line = append(line, c.Text[:c.size.first]...)
	dst = appendQPLine(dst, line)
	dst = append(dst, c.innerLines...)
	return dst, append(line[:0], c.Text[last:]...)
}

// appendQPLine appends one encoded line and its CRLF, with soft line breaks after at most 76
// characters.
func appendQPLine(dst, line []byte) []byte {
	col := 0
	for i, c := range line {
		literal := c > ' ' && c < 0x7f && c != '=' || (c == ' ' || c == '\t') && i+1 < len(line)
		width := 3
		if literal {
			width = 1
		}
		if col+width > encodedLine-1 {
			dst = append(dst, '=', '\r', '\n')
			col = 0
		}
		if literal {
			dst = append(dst, c)
		} else {
			dst = append(dst, '=', hexDigits[c>>4], hexDigits[c&15])
		}
		col += width
	}
	return append(dst, '\r', '\n')
}

// AppendText appends the body unencoded, with LF line ends.
func (b *Body) AppendText(dst []byte) []byte {
	dst = append(dst, b.Chunks[0].Text...)
	for i := range b.Ends {
		dst = append(dst, b.piece(i)...)
		dst = append(dst, b.Chunks[i+1].Text...)
	}
	return dst
}
