// Some commands and services on some streams, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/text/lost-text', 6);
await import('./lost-text.test.js');
