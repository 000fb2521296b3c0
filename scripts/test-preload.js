// Loaded into each test process before its tests (`--import`): gives fast-check the seed of the run, because its own
// default is the time of day.
import fc from 'fast-check';
import { chooseSeed } from './test-seed.js';

fc.configureGlobal({ seed: chooseSeed(process.env) });
