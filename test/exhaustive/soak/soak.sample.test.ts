// A soak of some seconds, with the known seed alone.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/soak/soak', 1);
await import('./soak.test.js');
