package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestCLIBuildsOnMacOSAndWindows: every package of the program passes the type checker for these systems. The bodies of
// functions of other modules are left out, so that this takes seconds.
func TestCLIBuildsOnMacOSAndWindows(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			config := &packages.Config{
				Mode: packages.LoadAllSyntax, Dir: ".", Env: append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0"),
				ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
					file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
					if file != nil && !strings.HasPrefix(name, root) {
						for _, d := range file.Decls {
							if f, ok := d.(*ast.FuncDecl); ok {
								f.Body = nil
							}
						}
					}
					return file, err
				},
			}
			loaded, err := packages.Load(config, ".")
			if err != nil {
				t.Fatal(err)
			}
			packages.Visit(loaded, nil, func(p *packages.Package) {
				if strings.HasPrefix(p.PkgPath, "github.com/addonflow/addonflow/") {
					for _, e := range p.Errors {
						t.Error(e)
					}
				}
			})
		})
	}
}
