package notifytext

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The GSM 7-bit default alphabet (3GPP TS 23.038, section 6.2.1), and the characters of its
// extension table, which count twice.
const (
	gsmBasic    = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "^{}\\[~]|€"
)

// welsh are characters of Welsh that the GSM alphabet lacks. They are kept, and make the message
// one of 16-bit characters.
const welsh = "ÀÈÌÒÙẀỲẁỳÁÍÓÚẂÝáíóúẃýËÏẄŸëïẅÿÂÊÎÔÛŴŶâêîôûŵŷ"

// plainForms are characters that have a plain form of the same meaning.
var plainForms = map[rune]string{
	'–': "-", '—': "-", '‐': "-", '‑': "-", '‒': "-", '―': "-", '−': "-",
	'‘': "'", '’': "'", '‚': "'", '‛': "'", '′': "'", '`': "'", '´': "'",
	'“': `"`, '”': `"`, '„': `"`, '‟': `"`, '″': `"`, '«': `"`, '»': `"`,
	'…': "...", '\t': " ", '•': "-", '·': ".",
	'ø': "ø", 'Ø': "Ø", 'ł': "l", 'Ł': "L", 'đ': "d", 'Đ': "D", 'ð': "d", 'Ð': "D", 'þ': "th", 'Þ': "Th", 'ı': "i", 'œ': "oe", 'Œ': "OE", 'ħ': "h", 'Ħ': "H",
}

// SMS returns a text message: values inserted, lists as a sentence, characters that the GSM
// alphabet lacks replaced.
func (t *Text) SMS(values Values) string {
	return strings.TrimSpace(ReplaceForSMS(t.insert(values, false)))
}

// ReplaceForSMS replaces characters that a text message does not keep: those with diacritics
// by their base characters, quotes and dashes by plain ones, anything else by a question mark.
func ReplaceForSMS(text string) string {
	var b strings.Builder
	for _, r := range norm.NFC.String(text) {
		switch {
		case isGSM(r) || strings.ContainsRune(welsh, r):
			b.WriteRune(r)
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r):
			// Characters without width, such as U+200B, are dropped.
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteString(plainForm(r))
		}
	}
	return b.String()
}

// plainForm returns what stands for a character that a text message lacks.
func plainForm(r rune) string {
	if form, ok := plainForms[r]; ok {
		return form
	}
	var base strings.Builder
	for _, part := range norm.NFKD.String(string(r)) {
		switch {
		case unicode.Is(unicode.Mn, part):
		case isGSM(part):
			base.WriteRune(part)
		default:
			return "?"
		}
	}
	if base.Len() == 0 {
		return "?"
	}
	return base.String()
}

func isGSM(r rune) bool {
	return strings.ContainsRune(gsmBasic, r) || strings.ContainsRune(gsmExtended, r)
}

// Fragments returns in how many parts a network sends a text message.
func Fragments(text string) int {
	units, wide := 0, false
	for _, r := range text {
		units++
		if strings.ContainsRune(gsmExtended, r) {
			units++
		}
		wide = wide || !isGSM(r)
	}
	single, part := 160, 153
	if wide {
		units, single, part = 0, 70, 67
		for _, r := range text {
			units++
			if r > 0xFFFF {
				units++ // a surrogate pair
			}
		}
	}
	if units <= single {
		return 1
	}
	return (units + part - 1) / part
}
