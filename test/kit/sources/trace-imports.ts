// Preloaded with `node --import`: records each module that a program resolves in the file WRIT_TRACE_IMPORTS.
import { register } from 'node:module';

register('./trace-imports-hooks.js', import.meta.url);
