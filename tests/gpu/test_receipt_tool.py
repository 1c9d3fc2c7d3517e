#!/usr/bin/env python3
"""tools/dev/receipt in a temporary tree: code that changes fails the check, a comment that changes does not."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
TEMPLATE = """// head
#define A 1 /* one */
__device__ const char *url = "http://x /* no comment */";
extern "C" __global__ void kern(float *d) { d[0] = 'a' + A; }
"""


class ReceiptTool(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        self.write("templates/fp8_x.cuh", TEMPLATE)
        self.write("runtime/launch/kernel.c", "int f(void) { return 1; }\n")
        self.write_receipt()

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_tool(self, *args):
        return subprocess.run([TOOL, "--root", self.root, *args], capture_output=True, text=True, check=False)

    def digests(self):
        lines = self.run_tool("--digests").stdout.splitlines()
        return dict(line.split("\t") for line in lines)

    def write_receipt(self):
        self.write("tests/gpu/receipt.json", json.dumps({"digests": self.digests()}))

    def check(self):
        return self.run_tool("--check").returncode

    def test_current(self):
        self.assertEqual(sorted(self.digests()), ["runtime/launch/kernel.c", "templates/fp8_x.cuh"])
        self.assertEqual(self.check(), 0)

    def test_comments_and_blanks_are_free(self):
        text = TEMPLATE.replace("// head", "// another head\n\n/* and\n more */").replace("{ d[0]", "{    d[0]")
        self.write("templates/fp8_x.cuh", text.replace("/* one */", "/* uno */"))
        self.assertEqual(self.check(), 0)

    def test_code_is_not(self):
        edits = (("A 1", "A 2"), ("http://x", "http://y"), ("/* no", "/*  no"), ("'a'", "'b'"), ("d[0]", "d[1]"),
                 ("#define A 1", "#define A 1 +"))
        for old, new in edits:
            self.write("templates/fp8_x.cuh", TEMPLATE.replace(old, new))
            ran = self.run_tool("--check")
            self.assertEqual(ran.returncode, 1, (old, new))
            self.assertIn("STALE templates/fp8_x.cuh", ran.stderr)

    def test_a_line_joined_is_code(self):
        self.write("templates/fp8_x.cuh", TEMPLATE.replace("/* one */\n", " "))
        self.assertEqual(self.check(), 1)

    def test_new_and_gone_files(self):
        self.write("templates/fp8_y.cuh", "int y;\n")
        self.assertEqual(self.check(), 1)
        os.unlink(os.path.join(self.root, "templates/fp8_y.cuh"))
        os.unlink(os.path.join(self.root, "runtime/launch/kernel.c"))
        self.assertEqual(self.check(), 1)

    def test_pending(self):
        self.write("templates/fp8_x.cuh", TEMPLATE.replace("A 1", "A 2"))
        self.assertEqual(self.run_tool("--pending", "no device today").returncode, 0)
        ran = self.run_tool("--check")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("no device today", ran.stderr)
        self.write("templates/fp8_x.cuh", TEMPLATE.replace("A 1", "A 3"))
        self.assertEqual(self.check(), 1, "pending holds for one content only")
        self.write_receipt()
        self.assertEqual(self.check(), 0)

    def test_no_receipt(self):
        os.unlink(os.path.join(self.root, "tests/gpu/receipt.json"))
        self.assertEqual(self.check(), 1)

    def test_header(self):
        path = os.path.join(self.root, "digests.h")
        self.assertEqual(self.run_tool("--header", path).returncode, 0)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, digest in self.digests().items():
            self.assertIn(f'{{"{name}", "{digest}"}}', text)


if __name__ == "__main__":
    unittest.main()
