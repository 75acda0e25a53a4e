// Forward passes of the encoders, as sentemb.models.towers has them. A word comes in projected: the sum of
// the rows of its features, plus the bias of a recurrent encoder.

const sigmoid = (x) => 0.5 + 0.5 * Math.tanh(0.5 * x);
const identity = (x) => x;

/** z += x M, where M holds x.length rows of z.length numbers from `at`. */
function addProduct(z, x, M, at = 0) {
  const n = z.length;
  for (let k = 0; k < x.length; k++) {
    const [value, row] = [x[k], at + k * n];
    for (let j = 0; j < n; j++) z[j] += value * M[row + j];
  }
}

/** The sum of the words' columns from `column` to `column + n`. */
function sumWords(words, column, n) {
  const sum = new Float64Array(n);
  for (const p of words) for (let j = 0; j < n; j++) sum[j] += p[column + j];
  return sum;
}

function unit(y) {
  const length = Math.sqrt(y.reduce((sum, x) => sum + x * x, 0));
  return length ? y.map((x) => x / length) : y;
}

/** Encoders that read word by word: `shape` as in config.json, `array(name)` their weights. */
class Recurrent {
  constructor(shape, array) {
    this.n = shape.cells;
    this.directions = shape.model === "bilstm" ? 2 : 1;
    this.isLstm = shape.model.endsWith("lstm");
    this.isMean = shape.model === "irnn";
    this.activation = this.isMean ? identity : Math.tanh;
    this.bagDim = shape.bag_dim;
    this.hasOutput = this.isLstm && shape.output_gate;
    this.hasForget = this.isLstm && shape.forget_gate;
    // Where each gate begins in a stack of gates, in multiples of n.
    const stack = this.hasOutput ? ["output"] : [];
    if (this.isLstm) stack.push("input", "candidate");
    if (this.hasForget) stack.push("forget");
    this.gates = this.isLstm ? stack : ["y"];
    this.gateWidth = this.gates.length * this.n;
    this.bagColumn = this.directions * this.gateWidth;
    this.width = this.bagColumn + this.bagDim;
    this.dim = this.directions * this.n + this.bagDim;
    this.bias = array("bias");
    this.recurrent = array("recurrent");
    this.kind = this.isLstm ? shape.peepholes : "none";
    this.peepholes = this.kind === "none" ? null : array("peepholes");
  }

  /** What is added to every projected word. */
  addBias(p) {
    for (let j = 0; j < this.bias.length; j++) p[j] += this.bias[j];
  }

  embed(words) {
    const y = new Float64Array(this.dim);
    if (!words.length) return y;
    for (let d = 0; d < this.directions; d++) {
      const last = this.scan(words, d).at(-1).y;
      const share = this.isMean ? 1 / words.length : 1;
      for (let j = 0; j < this.n; j++) y[d * this.n + j] = last[j] * share;
    }
    y.set(sumWords(words, this.bagColumn, this.bagDim), this.directions * this.n);
    return y;
  }

  /** What each gate holds after every word: rows of all directions' cells, by name. */
  trace(words) {
    const found = {};
    for (let d = 0; d < this.directions; d++) {
      const steps = this.scan(words, d);
      if (d) steps.reverse();
      for (const name of Object.keys(steps[0])) {
        const rows = steps.map((step) => [...step[name]]);
        found[name] = d ? found[name].map((row, t) => [...row, ...rows[t]]) : rows;
      }
    }
    return found;
  }

  /** The states of one direction after each word, in the order in which it reads. */
  scan(words, direction) {
    const steps = [];
    const order = direction ? [...words].reverse() : words;
    for (const p of order) {
      const column = direction * this.gateWidth;
      const z = Float64Array.from(p.subarray(column, column + this.gateWidth));
      const before = steps.at(-1);
      if (before) addProduct(z, before.y, this.recurrent, direction * this.n * this.gateWidth);
      steps.push(this.isLstm ? this.lstmStep(z, before, direction) : { y: z.map(this.activation) });
    }
    return steps;
  }

  lstmStep(z, before, direction) {
    const { n } = this;
    const part = (name) => {
      const first = this.gates.indexOf(name) * n;
      return z.subarray(first, first + n);
    };
    const step = { input: part("input"), candidate: part("candidate") };
    if (this.hasForget) step.forget = part("forget");
    if (this.hasOutput) step.output = part("output");
    if (before) {
      this.addPeephole(step.input, before.cell, direction, 2);
      if (this.hasForget) this.addPeephole(step.forget, before.cell, direction, 1);
    }
    const [i, g] = [step.input.map(sigmoid), step.candidate.map(Math.tanh)];
    const f = this.hasForget ? step.forget.map(sigmoid) : null;
    const c = i.map((value, j) => {
      const kept = before ? before.cell[j] * (f ? f[j] : 1) : 0;
      return kept + value * g[j];
    });
    const found = { input: i, candidate: g, cell: c, y: c.map(Math.tanh) };
    if (f) found.forget = f;
    if (this.hasOutput) {
      // The output gate looks at the new cell state.
      this.addPeephole(step.output, c, direction, 0);
      found.output = step.output.map(sigmoid);
      found.y = found.y.map((value, j) => value * found.output[j]);
    }
    return found;
  }

  /** Add to a gate what its peephole, number 0 to 2 of the stack, sees of a cell state. */
  addPeephole(z, c, direction, number) {
    const { n, peepholes } = this;
    if (this.kind === "diagonal") {
      const at = (3 * direction + number) * n;
      for (let j = 0; j < n; j++) z[j] += peepholes[at + j] * c[j];
    } else if (this.kind === "full") {
      addProduct(z, c, peepholes, (3 * direction + number) * n * n);
    }
  }
}

/** bag, dssm, clsm and dan: words are pooled, and dense layers follow. */
class Pooled {
  constructor(shape, array) {
    this.model = shape.model;
    this.dim = shape.cells;
    this.hidden = shape.model === "bag" ? shape.cells : shape.hidden;
    this.window = shape.model === "clsm" ? shape.window : 1;
    this.width = this.window * this.hidden;
    const isDan = shape.model === "dan";
    this.bias = ["dssm", "clsm"].includes(shape.model) ? array("bias") : null;
    this.activation = isDan && shape.activation === "linear" ? identity : Math.tanh;
    this.layers = isDan
      ? Array.from({ length: shape.layers }, (_, k) => [array(`layer${k + 1}`), array(`bias${k + 1}`)])
      : this.bias
        ? [[array("output"), array("output_bias")]]
        : [];
  }

  addBias() {}

  embed(words) {
    if (!words.length) return new Float64Array(this.dim);
    let y = this.pool(words);
    for (const [matrix, bias] of this.layers) {
      const z = Float64Array.from(bias);
      addProduct(z, y, matrix);
      y = z.map(this.activation);
    }
    return y;
  }

  pool(words) {
    if (this.model === "clsm") return this.poolWindows(words);
    const sum = sumWords(words, 0, this.hidden);
    if (this.model === "dssm") return sum.map((x, j) => Math.tanh(x + this.bias[j]));
    if (this.model === "bag") return sum;
    // A word without features is zero and is not counted.
    const read = words.filter((p) => p.some((x) => x !== 0)).length;
    return read > 1 ? sum.map((x) => x / read) : sum;
  }

  poolWindows(words) {
    const reach = this.window >> 1;
    const best = new Float64Array(this.hidden).fill(-Infinity);
    words.forEach((_, t) => {
      const z = Float64Array.from(this.bias);
      for (let s = 0; s < this.window; s++) {
        const p = words[t + s - reach];
        if (p) for (let j = 0; j < z.length; j++) z[j] += p[s * this.hidden + j];
      }
      for (let j = 0; j < z.length; j++) best[j] = Math.max(best[j], z[j]);
    });
    return best.map(Math.tanh);
  }
}

/** Several encoders, whose vectors of unit length are joined. */
class Ensemble {
  constructor(shape, array) {
    this.members = shape.members.map((own, k) => encoderOf(own, (name) => array(`${k}.${name}`)));
    const total = (name) => this.members.reduce((sum, one) => sum + one[name], 0);
    [this.width, this.dim] = [total("width"), total("dim")];
  }

  /** The part of a projected word that each member reads. */
  parts(p) {
    let column = 0;
    return this.members.map((one) => p.subarray(column, (column += one.width)));
  }

  addBias(p) {
    this.parts(p).forEach((part, k) => this.members[k].addBias(part));
  }

  embed(words) {
    const parts = words.map((p) => this.parts(p));
    const units = this.members.map((one, k) => unit(one.embed(parts.map((part) => part[k]))));
    return Float64Array.from(units.flatMap((one) => [...one]));
  }
}

function encoderOf(shape, array) {
  if (shape.model === "ensemble") return new Ensemble(shape, array);
  const kind = ["lstm", "bilstm", "rnn", "irnn"].includes(shape.model) ? Recurrent : Pooled;
  return new kind(shape, array);
}

const REMEMBERED = 4000; // words whose projection is kept

/** An encoder, its input weights and the vocabulary: words in, a vector out. */
class Tower {
  /** `rows` has the row of each feature in the table, -1 where it is zero; see `Table`. */
  constructor(encoder, vocabulary, rows, table) {
    Object.assign(this, { encoder, vocabulary, rows, table });
    this.memory = new Map();
  }

  /** The sum of the rows of a word's features, and the bias. */
  project(word) {
    let p = this.memory.get(word);
    if (p) return p;
    p = new Float64Array(this.encoder.width);
    for (const id of this.vocabulary.features(word)) {
      if (this.rows[id] >= 0) this.table.addRow(this.rows[id], p);
    }
    this.vocabulary.vectorOf(word)?.forEach((value, k) => {
      const row = this.rows[this.vocabulary.firstNumber + k];
      if (row >= 0) this.table.addRow(row, p, value);
    });
    this.encoder.addBias(p);
    if (this.memory.size >= REMEMBERED) this.memory.clear();
    this.memory.set(word, p);
    return p;
  }

  /** The vector of unit length, zero for a text without words. */
  embed(words) {
    return unit(this.encoder.embed(words.map((word) => this.project(word))));
  }

  trace(words) {
    return this.encoder.trace(words.map((word) => this.project(word)));
  }
}

/** Rows of numbers, or of integers of 8 bits with a scale for each row. */
class Table {
  constructor(values, scales, width) {
    Object.assign(this, { values, scales, width });
  }

  get length() {
    return this.values.length / this.width;
  }

  /** Add a row, times `factor`. */
  addRow(row, sum, factor = 1) {
    const [{ values, width }, scale] = [this, this.scales ? factor * this.scales[row] : factor];
    const at = row * width;
    for (let j = 0; j < width; j++) sum[j] += scale * values[at + j];
  }

  /** The dot product of every row with x. */
  products(x) {
    const { values, scales, width } = this;
    const found = new Float64Array(this.length);
    for (let row = 0, at = 0; row < found.length; row++, at += width) {
      let sum = 0;
      for (let j = 0; j < width; j++) sum += values[at + j] * x[j];
      found[row] = scales ? sum * scales[row] : sum;
    }
    return found;
  }
}
