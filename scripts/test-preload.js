// Loaded into each test process before its tests (`--import`), so that results depend on neither chance nor the user's
// shell. Gives fast-check the seed of the run, because its own default is the time of day. Sets the usual umask, because
// with 077 the files of a test would be closed to the users that it changes to.
import fc from 'fast-check';
import { chooseSeed } from './test-seed.js';

process.umask(0o022);
fc.configureGlobal({ seed: chooseSeed(process.env) });
