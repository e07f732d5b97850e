// Pixels of a PNG as indexes into a palette of at most 256 colours: the most frequent ones, and for all others the
// nearest of these. Screenshots have few colours and many shades at the edges of letters.
async (png) => {
  const blob = await (await fetch(`data:image/png;base64,${png}`)).blob();
  const bitmap = await createImageBitmap(blob);
  const { width, height } = bitmap;
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  canvas.drawImage(bitmap, 0, 0);
  const bytes = canvas.getImageData(0, 0, width, height).data;
  const colours = new Uint32Array(width * height);
  const counts = new Map();
  for (let i = 0; i < colours.length; i++) {
    const colour = (bytes[4 * i] << 16) | (bytes[4 * i + 1] << 8) | bytes[4 * i + 2];
    colours[i] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 256).map(([colour]) => colour);
  const distance = (a, b) =>
    ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;
  const indexes = new Map();
  for (const colour of counts.keys()) {
    let best = 0;
    for (let i = 1; i < palette.length; i++) {
      if (distance(colour, palette[i]) < distance(colour, palette[best])) best = i;
    }
    indexes.set(colour, best);
  }
  let pixels = "";
  for (let i = 0; i < colours.length; i++) pixels += String.fromCharCode(indexes.get(colours[i]));
  return { width, height, palette, pixels: btoa(pixels) };
}
