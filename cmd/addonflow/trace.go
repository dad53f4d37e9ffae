package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/addonflow/addonflow/controllers/addonrollout"
)

// traceTo appends plans to a file, one per line. Several operators may write to one file. Each line is one write. If
// a killed operator left an incomplete line, the next one begins on a new line.
func traceTo(name string) (func(addonrollout.Planning) error, error) {
	if name == "" {
		return nil, nil // no trace is requested
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the file that the flag names
	if err != nil {
		return nil, fmt.Errorf("cannot open --trace-file: %w", err)
	}
	return func(p addonrollout.Planning) error {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		_, err = file.Write(slices.Concat([]byte{'\n'}, line, []byte{'\n'}))
		return err
	}, nil
}
