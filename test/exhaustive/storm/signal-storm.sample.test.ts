// A small storm.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/storm/signal-storm', 60);
await import('./signal-storm.test.js');
