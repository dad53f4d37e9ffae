package problem

import (
	"strconv"
	"strings"
	"unicode"
)

// visible returns text as it can be shown to people: white space of any kind becomes a space;
// invisible characters (control characters, marks that change the direction of text, spaces
// without width) become escapes.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
