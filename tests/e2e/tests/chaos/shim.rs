//! Library in C that is loaded before the C library, with a number that the test sets while the
//! process runs.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

/// Beginning of each library: `cell` points to the number, or to nothing.
const CELL: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile long *cell;
__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("SHIM_CELL"), O_RDONLY);
    void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) cell = page;
}
"#;

/// Compiled library and the file with its number.
pub struct PreloadShim {
    library: PathBuf,
    cell: PathBuf,
}

impl PreloadShim {
    /// Compiles `source` in the folder; the number is 0.
    pub fn compile(folder: &Path, source: &str) -> Result<Self> {
        let (library, cell) = (folder.join("shim.so"), folder.join("cell"));
        let file = folder.join("shim.c");
        fs::write(&file, format!("{CELL}{source}"))?;
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-o"]);
        compile.arg(&library).arg(&file);
        ensure!(compile.status()?.success(), "{compile:?}");
        fs::write(&cell, 0_i64.to_ne_bytes())?;
        Ok(Self { library, cell })
    }

    /// Variables of a process that is to load it.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let shown = |path: &Path| path.display().to_string();
        [
            ("LD_PRELOAD", shown(&self.library)),
            ("SHIM_CELL", shown(&self.cell)),
        ]
    }

    /// Sets the number in place, since processes have the file mapped.
    pub fn set(&self, number: i64) -> Result<()> {
        let file = fs::File::options().write(true).open(&self.cell)?;
        Ok(file.write_all_at(&number.to_ne_bytes(), 0)?)
    }
}
