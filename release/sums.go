package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// sums is the file with the checksums; its signature has .sig after it.
	sums = "checksums.txt"
	// publicKey is the file with the public half of the key that signed.
	publicKey = "addonflow.pub"
)

// readKey reads the key that signs; nil: none was given.
func readKey(file string) (ed25519.PrivateKey, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no key in PEM; make one with: openssl genpkey -algorithm ed25519 -out %s", file, file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key in %s: %w", file, err)
	}
	key, is := parsed.(ed25519.PrivateKey)
	if !is {
		return nil, errors.New("the key is not an Ed25519 key")
	}
	return key, nil
}

// writeSums writes the SHA-256 of every file, as sha256sum does. With a key it signs the list, and writes the public
// key beside it.
func writeSums(out string, key ed25519.PrivateKey) error {
	var list bytes.Buffer
	err := fs.WalkDir(os.DirFS(out), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(content), name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot sum up the files: %w", err)
	}
	if err := os.WriteFile(filepath.Join(out, sums), list.Bytes(), 0o644); err != nil {
		return err
	}
	if key == nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(out, sums+".sig"), ed25519.Sign(key, list.Bytes()), 0o644); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, publicKey), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}
