/**
 * Before each test file: what earlier files of this process have loaded of our modules and of the tests' is
 * loaded anew, with its state and its hooks. Installed packages stay: they take longer to load than most files
 * to run, and without `isolate: false` every file would do it again.
 */
import { vi } from "vitest";

vi.resetModules();
